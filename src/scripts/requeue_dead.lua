-- Lets dead letters be delivered again at once, with the same ids and without their counts. Idempotent.
-- KEYS   1 dead letters   2 dead messages: their content   3 messages   4 retries   5 scratch
--        6 channel of retries   7 jobs   8 notes   9 more notes
-- ARGV   1.. ids, up to 1,000
-- Reply  how many of these, in their order, are no dead letters now: no more than 4 MB unless one of them is
--        longer
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
ensure_permitted({'ZREM', 'HDEL'}, {})
-- These change nothing, but fail without the permission.
redis.call('ZADD', KEYS.retries, 'XX', 0, '')
redis.call('ZREM', KEYS.dead, '')
redis.call('HDEL', KEYS.dead_messages, '')
local MOST_BYTES = 4194304
local gone, added, bytes = 0, false, 0

local function read(id)
    return redis.pcall('HGET', KEYS.messages, id)
end

for _, id in ipairs(ARGV) do
    local content = redis.call('HGET', KEYS.dead_messages, id)
    bytes = bytes + #(content or '')
    if bytes > MOST_BYTES and gone > 0 then
        break
    end
    local letter = letter_of(content)
    if letter then
        local first, delivery, payload, data = letter[5], letter[7], letter[8], letter[9]
        local message = free_id(read, id)
        -- The next receiver puts its own policy there.
        local policy, claimed = struct.pack('>HHI4c1', 10, 5, 30000, 'k'), struct.pack('>I6', first)
        local record = changed(new_record(policy, claimed, data) .. payload, delivery, 0, 0, policy)
        redis.call('HSET', KEYS.messages, message, record)
        rename_job(data, id, message)
        redis.call('ZADD', KEYS.retries, now, message)
        added = true
    end
    if letter or not content then
        redis.call('ZREM', KEYS.dead, id)
        redis.call('HDEL', KEYS.dead_messages, id)
        gone = gone + 1
    end
end
if added then
    redis.pcall('PUBLISH', KEYS.channel, now)
end
return gone
