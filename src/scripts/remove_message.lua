-- Deletes messages that are in flight or wait for a retry, or lets them be delivered at once; those whose
-- jobs were cancelled end instead. Their deliveries no longer hold.
-- KEYS   1 messages   2 leases   3 retries   4 scratch   5 channel of retries   6 jobs   7 notes
--        8 more notes
-- ARGV   1 'remove' | 'retry'
--        2 'any' | 'waiting': only those that wait for a retry, and that are not due if they are to be
--        retried   3.. ids, up to 100
-- Reply  {how many of them it has changed, how many it has looked at: no more than 4 MB unless one of them is
--        longer}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local MOST_BYTES = 4194304
local removes, deliveries, looked_at, bytes = ARGV[1] == 'remove', {}, 0, 0
for i = 3, #ARGV do
    local due = ARGV[2] == 'any' or redis.call('ZSCORE', KEYS.retries, ARGV[i])
    local is_meant = due and (due == true or removes or tonumber(due) > now)
    local record = is_meant and redis.call('HGET', KEYS.messages, ARGV[i])
    bytes = bytes + #(record or '')
    if bytes > MOST_BYTES and looked_at > 0 then
        break
    end
    looked_at = looked_at + 1
    if record and is_readable(record) then
        deliveries[#deliveries + 1] = {ARGV[i], ARGV[i] .. string.sub(record, 2, 5), record}
    end
end
if #deliveries == 0 then
    return {0, looked_at}
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
return {#deliveries, looked_at}
