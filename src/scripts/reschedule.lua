-- Changes the due time of one pending entry.
-- KEYS   1 timeout set   2 channel
-- ARGV   1 'after': the time is a delay in ms | 'at': it is the due time, epoch ms   2 time   3 entry
-- Reply  the server's clock, epoch ms; or false if the entry is no longer pending
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n)
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local due = (ARGV[1] == 'after' and now or 0) + ARGV[2]
if due >= 1e15 then
    return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
end
if not redis.call('ZSCORE', KEYS[1], ARGV[3]) then
    return false
end
local score = string.format('%.0f', due)
redis.call('ZADD', KEYS[1], 'XX', score, ARGV[3])
-- Redisson sets its timer to whatever is announced, later times too, so only a head is announced.
if redis.call('ZRANGE', KEYS[1], 0, 0)[1] == ARGV[3] then
    redis.pcall('PUBLISH', KEYS[2], score)
end
return now
