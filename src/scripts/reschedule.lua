-- Changes the due time of one pending entry.
-- KEYS   1 timeout set   2 channel   3 jobs   4 notes   5 more notes   6 ordered list
--        7 rebuild: see parts/list_again.lua
-- ARGV   1 what the time counts from, epoch ms; or 'now': from the server's clock   2 time in ms   3 entry
-- Reply  {the server's clock, epoch ms; the head, if its transfer may have to be started, or false}; or false
--        if the entry is no longer pending
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n); of an overdue entry, while a large backlog is moved, a native scan of the ordered list
local now, due = new_due(ARGV[1], ARGV[2])
if due >= 1e15 then
    return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
end
redis.call('ZRANGE', KEYS.timeout_set, 0, 0)
local was_due = tonumber(redis.call('ZSCORE', KEYS.timeout_set, ARGV[3]) or nil)
if not was_due then
    return false
end
redis.call('ZADD', KEYS.timeout_set, 'XX', 0, '') -- changes nothing, but fails without the permission
local id = string.sub(ARGV[3], 2, 1 + (string.byte(ARGV[3]) or 0))
local field = redis.call('HGET', KEYS.jobs, id)
if field and has_entry(field) and entry_of(field) == ARGV[3] then
    move_note(id, field, due)
end
return {now, reschedule(ARGV[3], was_due, now, due)}
