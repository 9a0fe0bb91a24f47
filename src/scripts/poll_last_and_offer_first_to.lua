-- Takes the entry offered last out of the queue, before it is due, and pushes its payload to the head of a
-- list. Quarantines the malformed ones behind it. Forgets the job that it is.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 destination list   5 scratch   6 jobs   7 notes
--        8 more notes
-- Reply  {how many were quarantined, the payload or false, 1 if there are entries in front of those, else 0}
-- Cost   O(log n) for each. At most 1,000, and the one with which they exceed 1 MB is the last
local MOST, BYTES = 1000, 1048576
redis.call('LLEN', KEYS.quarantine)
redis.call('LLEN', KEYS.destination)
redis.call('ZSCORE', KEYS.timeout_set, '')
local length = redis.call('LLEN', KEYS.ordered_list)
if length == 0 then
    return {0, false, 0}
end
local read, bytes, count, longest = 0, 0, 1, 1
local malformed, entry, payload = {}, nil, nil
while not payload and read < math.min(length, MOST) and bytes <= BYTES do
    count = math.min(count, MOST - read, math.max(1, math.floor((BYTES - bytes) / longest)))
    local chunk = redis.call('LRANGE', KEYS.ordered_list, -read - count, -read - 1)
    for i = #chunk, 1, -1 do
        entry = chunk[i]
        read, bytes, longest = read + 1, bytes + #entry, math.max(longest, #entry)
        payload = payload_of(entry)
        if payload then
            break
        end
        malformed[#malformed + 1] = redis.call('ZSCORE', KEYS.timeout_set, entry) or ''
        malformed[#malformed + 1] = entry
    end
    count = math.min(8 * count, 64)
end
local ids, fields = jobs_of(payload and {entry} or {})
ensure_permitted({'ZREM'}, {'RPUSH', 'LPUSH'})
for i = 1, #malformed, 2 do
    redis.call('ZREM', KEYS.timeout_set, malformed[i + 1])
    redis.call('RPUSH', KEYS.quarantine, malformed[i], malformed[i + 1])
end
if payload then
    redis.call('ZREM', KEYS.timeout_set, entry)
    redis.call('LPUSH', KEYS.destination, payload)
end
redis.call('LTRIM', KEYS.ordered_list, 0, -read - 1)
forget(ids, fields)
return {#malformed / 2, payload or false, not payload and read < length and 1 or 0}
