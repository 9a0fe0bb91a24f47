-- Takes the entry offered last out of the queue, before it is due, and pushes its payload to the head of a list.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 destination list   5 scratch
-- Reply  {how many were quarantined, the payload or false if nothing is pending}
-- Cost   O(log n)
redis.call('LLEN', KEYS.quarantine)
redis.call('LLEN', KEYS.destination)
redis.call('ZSCORE', KEYS.timeout_set, '')
if redis.call('LLEN', KEYS.ordered_list) == 0 then
    return {0, false}
end
redis.call('LINDEX', KEYS.ordered_list, -1)
ensure_permitted({'ZREM'}, {'RPUSH', 'LPUSH'})
local quarantined = 0
while true do
    local entry = redis.call('LINDEX', KEYS.ordered_list, -1)
    if not entry then
        return {quarantined, false}
    end
    local score = redis.call('ZSCORE', KEYS.timeout_set, entry)
    redis.call('ZREM', KEYS.timeout_set, entry)
    redis.call('LTRIM', KEYS.ordered_list, 0, -2)
    local payload = payload_of(entry)
    if payload then
        redis.call('LPUSH', KEYS.destination, payload)
        return {quarantined, payload}
    end
    redis.call('RPUSH', KEYS.quarantine, score or '', entry)
    quarantined = quarantined + 1
end
