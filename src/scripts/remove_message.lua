-- Deletes messages that are in flight or wait for a retry, or lets them be delivered at once. Their deliveries no longer hold.
-- KEYS   1 messages   2 leases   3 retries   4 scratch   5 channel of retries
-- ARGV   1 'remove' | 'retry'   2 id
-- Reply  1, or 0 if there is no such message
-- Clock  the server's (TIME)
-- Cost   O(log n)
local record = redis.call('HGET', KEYS.messages, ARGV[2])
if not record or not is_readable(record) then
    return 0
end
ensure_permitted({'ZREM', 'HDEL'}, {})
redis.call('ZADD', KEYS.retries, 'XX', 0, '') -- changes nothing, but fails without the permission
redis.call('ZREM', KEYS.leases, ARGV[2] .. string.sub(record, 2, 5))
if ARGV[1] == 'remove' then
    redis.call('ZREM', KEYS.retries, ARGV[2])
    redis.call('HDEL', KEYS.messages, ARGV[2])
else
    local time = redis.call('TIME')
    local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    redis.call('ZADD', KEYS.retries, now, ARGV[2])
    redis.pcall('PUBLISH', KEYS.channel, now)
end
return 1
