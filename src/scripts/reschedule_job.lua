-- Changes the due time of a pending job.
-- KEYS   1 timeout set   2 channel   3 jobs
-- ARGV   1 what the time counts from, epoch ms; or 'now': from the server's clock   2 time in ms   3 id
-- Reply  {the due time, epoch ms; the head, if its transfer may have to be started, or false}; or false if there is no such job
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n)
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local due = (tonumber(ARGV[1]) or now) + ARGV[2]
if due >= 1e15 then
    return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
end
local entry = job_of(ARGV[3])
if not entry then
    return false
end
local score = string.format('%.0f', due)
redis.call('ZADD', KEYS.timeout_set, 'XX', score, entry)
local head = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')
if head.err or head[1] == entry then
    redis.pcall('PUBLISH', KEYS.channel, score)
    return {due, score}
end
return {due, tonumber(head[2]) <= now and head[2]}
