-- Lets dead letters be delivered again at once, with the same ids and without their counts. Idempotent.
-- KEYS   1 dead letters   2 their content   3 messages   4 retries   5 scratch   6 channel of retries
-- ARGV   1.. ids, up to 1,000
-- Reply  how many of these, in their order, are no dead letters now: no more than 4 MB unless one of them is longer
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
ensure_permitted(KEYS[5], {'ZREM', 'HDEL'}, {})
redis.call('ZADD', KEYS[4], 'XX', 0, '') -- changes nothing, but fails without the permission
local MOST_BYTES = 4194304
local gone, added, bytes = 0, false, 0
for _, id in ipairs(ARGV) do
    local content = redis.call('HGET', KEYS[2], id)
    bytes = bytes + #(content or '')
    if bytes > MOST_BYTES and gone > 0 then
        break
    end
    local letter = letter_of(content)
    if letter then
        local first, delivery, payload = letter[5], letter[7], letter[8]
        local message = free_id(KEYS[3], id)
        -- The next receiver puts its own policy there.
        local policy = struct.pack('>HHI4c1', 10, 5, 30000, 'k')
        redis.call('HSET', KEYS[3], message, header(delivery, 0, 0, policy, struct.pack('>I6', first)) .. payload)
        redis.call('ZADD', KEYS[4], now, message)
        added = true
    end
    if letter or not content then
        redis.call('ZREM', KEYS[1], id)
        redis.call('HDEL', KEYS[2], id)
        gone = gone + 1
    end
end
if added then
    redis.pcall('PUBLISH', KEYS[6], now)
end
return gone
