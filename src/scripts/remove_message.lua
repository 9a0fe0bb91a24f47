-- Deletes messages that are in flight or wait for a retry, or lets them be delivered at once; those whose
-- jobs were cancelled end instead. Their deliveries no longer hold.
-- KEYS   1 messages   2 leases   3 retries   4 scratch   5 channel of retries   6 jobs   7 notes
--        8 more notes
-- ARGV   1 'remove' | 'retry'
--        2 'any' | 'waiting': only those that wait for a retry, and that are not due if they are to be
--        retried   3.. ids, up to 100
-- Reply  how many of them it has changed
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local removes, deliveries = ARGV[1] == 'remove', {}
for i = 3, #ARGV do
    local record = redis.call('HGET', KEYS.messages, ARGV[i])
    local is_meant = record and is_readable(record)
    if is_meant and ARGV[2] == 'waiting' then
        local due = redis.call('ZSCORE', KEYS.retries, ARGV[i])
        is_meant = due and (removes or tonumber(due) > now)
    end
    if is_meant then
        deliveries[#deliveries + 1] = {ARGV[i], ARGV[i] .. string.sub(record, 2, 5), record}
    end
end
if #deliveries == 0 then
    return 0
end
ensure_permitted({'ZREM', 'HDEL'}, {})
redis.call('ZADD', KEYS.retries, 'XX', 0, '') -- changes nothing, but fails without the permission
now = string.format('%.0f', now)
for _, delivery in ipairs(deliveries) do
    local id, lease, record = unpack(delivery)
    redis.call('ZREM', KEYS.leases, lease)
    if removes then
        redis.call('ZREM', KEYS.retries, id)
        redis.call('HDEL', KEYS.messages, id)
        end_job(data_in(record), id)
    elseif end_cancelled(record, id) then
        redis.call('ZREM', KEYS.retries, id)
    else
        redis.call('ZADD', KEYS.retries, now, id)
    end
end
if not removes then
    redis.pcall('PUBLISH', KEYS.channel, now)
end
return #deliveries
