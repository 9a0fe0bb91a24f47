-- Counts what is in the keys of a queue, and reads what holds its receivers back.
-- KEYS   1 timeout set   2 ordered list   3 target   4 quarantine   5 claims   6 leases   7 retries
--        8 dead letters   9 control
-- Reply  {pending, in the ordered list, ready, quarantined, claims, overdue, head or false, in flight,
--        waiting for a retry, dead letters, first retry or ended lease or false, 1 if it is paused or 0, the
--        most messages in flight or false, the server's clock in microseconds}
-- Clock  the server's (TIME)
-- Cost   O(log n)
local time = redis.call('TIME')
local now = string.format('%.3f', time[1] * 1000 + time[2] / 1000)
local again = redis.call('ZRANGE', KEYS.retries, 0, 0, 'WITHSCORES')[2]
local lease = redis.call('ZRANGE', KEYS.leases, 0, 0, 'WITHSCORES')[2]
if lease and tonumber(lease) <= tonumber(now) and tonumber(lease) < (tonumber(again) or math.huge) then
    -- No receiver has taken its message back.
    again = lease
end
return {
    redis.call('ZCARD', KEYS.timeout_set),
    redis.call('LLEN', KEYS.ordered_list),
    redis.call('LLEN', KEYS.target),
    redis.call('LLEN', KEYS.quarantine) / 2,
    redis.call('HLEN', KEYS.claims),
    redis.call('ZCOUNT', KEYS.timeout_set, '-inf', now),
    redis.call('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2] or false,
    redis.call('ZCARD', KEYS.leases),
    redis.call('ZCARD', KEYS.retries),
    redis.call('ZCARD', KEYS.dead),
    again or false,
    redis.call('HGET', KEYS.control, 'paused') and 1 or 0,
    -- What is no number limits nothing: see receive/limits.lua.
    string.match(redis.call('HGET', KEYS.control, 'most') or '', '^%d+$') or false,
    time[1] * 1000000 + time[2],
}
