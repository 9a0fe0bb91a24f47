-- Takes the entry offered last out of the queue, before it is due, and pushes its payload to the head of a list.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 destination list
-- Reply  {how many were quarantined, the payload or false if nothing is pending}
-- Cost   O(log n)
redis.call('ZCARD', KEYS[1])
redis.call('LLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
local quarantined = 0
while true do
    local entry = redis.call('RPOP', KEYS[2])
    if not entry then
        return {quarantined, false}
    end
    local score = redis.call('ZSCORE', KEYS[1], entry)
    redis.call('ZREM', KEYS[1], entry)
    local payload = payload_of(entry)
    if payload then
        redis.call('LPUSH', KEYS[4], payload)
        return {quarantined, payload}
    end
    redis.call('RPUSH', KEYS[3], score or '', entry)
    quarantined = quarantined + 1
end
