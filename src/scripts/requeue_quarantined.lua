-- Returns one entry from the quarantine to the queue, with the score it had, behind the entries offered
-- since.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 channel   5 scratch
-- ARGV   1 score, or '' if the entry was in the ordered list only   2 entry
-- Reply  {1, the head if this entry is the head now, else false}; or {0, false} if it is not in the
--        quarantine
-- Cost   O(log n), and native scans of the quarantine, up to the entry
redis.call('LLEN', KEYS.ordered_list)
redis.call('ZRANGE', KEYS.timeout_set, 0, 0)
local score, entry = ARGV[1], ARGV[2]
local at = find_pair(score, entry, 0)
if not at then
    return {0, false}
end
ensure_permitted({'LREM'}, {'RPUSH'})
redis.call('LSET', KEYS.quarantine, at, score) -- changes nothing, but fails without the permission
-- The next write fails if the score is not a number.
if score == '' or redis.call('ZADD', KEYS.timeout_set, 'NX', score, entry) == 1 then
    redis.call('RPUSH', KEYS.ordered_list, entry)
end
remove_pair(at)
local head = redis.call('ZRANGE', KEYS.timeout_set, 0, 0)[1]
local due = tonumber(score)
if head ~= entry or not due then
    return {1, false}
end
-- Redisson throws if it receives anything but a plain integer, and Lua's doubles lose digits beyond 10^15.
if due < 1e15 then
    redis.pcall('PUBLISH', KEYS.channel, string.format('%.0f', math.max(0, math.ceil(due))))
end
return {1, score}
