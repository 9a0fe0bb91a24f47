-- Counts what is in the keys of a queue, and reads what holds its receivers back.
-- KEYS   1 timeout set   2 ordered list   3 target   4 quarantine   5 claims   6 leases   7 retries   8 dead letters   9 control
-- Reply  {pending, in the ordered list, ready, quarantined, claims, overdue, head or false, in flight, waiting for a retry,
--        dead letters, first retry or ended lease or false, 1 if it is paused or 0, the most messages in flight or false, the server's clock in
--        microseconds}
-- Clock  the server's (TIME)
-- Cost   O(log n)
local time = redis.call('TIME')
local now = string.format('%.3f', time[1] * 1000 + time[2] / 1000)
local again = redis.call('ZRANGE', KEYS[7], 0, 0, 'WITHSCORES')[2]
local lease = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2]
if lease and tonumber(lease) <= tonumber(now) and tonumber(lease) < (tonumber(again) or math.huge) then
    -- No receiver has taken its message back.
    again = lease
end
return {
    redis.call('ZCARD', KEYS[1]),
    redis.call('LLEN', KEYS[2]),
    redis.call('LLEN', KEYS[3]),
    redis.call('LLEN', KEYS[4]) / 2,
    redis.call('HLEN', KEYS[5]),
    redis.call('ZCOUNT', KEYS[1], '-inf', now),
    redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or false,
    redis.call('ZCARD', KEYS[6]),
    redis.call('ZCARD', KEYS[7]),
    redis.call('ZCARD', KEYS[8]),
    again or false,
    redis.call('HGET', KEYS[9], 'paused') and 1 or 0,
    -- What is no number limits nothing: see receive/limits.lua.
    string.match(redis.call('HGET', KEYS[9], 'most') or '', '^%d+$') or false,
    time[1] * 1000000 + time[2],
}
