-- Changes the due time of a job that is pending, or waits for a retry.
-- KEYS   1 timeout set   2 channel   3 jobs   4 notes   5 target   6 inbox   7 messages   8 retries   9 dead
--        10 dead messages   11 receivers: the channel of retries   12 more notes   13 ordered list
--        14 rebuild: see parts/list_again.lua
-- ARGV   1 what the time counts from, epoch ms; or 'now': from the server's clock   2 time in ms   3 id
-- Reply  {the due time, epoch ms; the head, if its transfer may have to be started, or false}; or false if
--        there is no such job
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n); of an overdue job, while a large backlog is moved, a native scan of the ordered list
local now, due = new_due(ARGV[1], ARGV[2])
if due >= 1e15 then
    return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
end
local entry, was_due, _, field = job_of(ARGV[3])
if not entry then
    local holder = field and is_of_message(field) and holder_of(ARGV[3], field, now)
    if not holder or holder.state ~= 'waiting' then
        return false
    end
    local score = string.format('%.0f', due)
    redis.call('ZADD', KEYS.retries, 'XX', score, holder.message)
    -- What is done may not fail any more. An announcement too many is no harm.
    local rank = redis.pcall('ZRANK', KEYS.retries, holder.message)
    if rank == 0 or type(rank) == 'table' then
        redis.pcall('PUBLISH', KEYS.receivers, score)
    end
    return {due, false}
end
redis.call('ZADD', KEYS.timeout_set, 'XX', 0, '') -- changes nothing, but fails without the permission
move_note(ARGV[3], field, due)
return {due, reschedule(entry, was_due, now, due)}
