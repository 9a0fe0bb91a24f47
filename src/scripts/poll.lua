-- Takes the entries offered first out of the queue, before they are due. A lost reply loses none of them.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 claims   5 scratch
-- ARGV   1 most entries, 1..1000   2 ms for which claims are kept   3 id of this poll
--        4 id of an earlier poll whose reply has arrived, or ''
-- Reply  {how many were quarantined, entry, score or '', entry, score or '', ...}
-- Cost   O(log n) per entry. The one with which 1 MB is exceeded is the last
local BYTES = 1048576
local polled = claimed(KEYS[4], ARGV[3])
if polled then
    table.insert(polled, 1, 0)
    return polled
end
local most, read, malformed = tonumber(ARGV[1]), 0, {}
local bytes, count, longest = 0, 16, 1
polled = {}
while #polled < 2 * most and bytes <= BYTES do
    count = math.min(count, most - #polled / 2, math.max(1, math.floor((BYTES - bytes) / longest)))
    local entries = redis.call('LRANGE', KEYS[2], read, read + count - 1)
    if #entries == 0 then
        break
    end
    count = 8 * count
    for _, entry in ipairs(entries) do
        if bytes > BYTES then
            break
        end
        read = read + 1
        bytes, longest = bytes + #entry, math.max(longest, #entry)
        local score = redis.call('ZSCORE', KEYS[1], entry) or ''
        if payload_of(entry) then
            polled[#polled + 1] = entry
            polled[#polled + 1] = score
        else
            malformed[#malformed + 1] = score
            malformed[#malformed + 1] = entry
        end
    end
end
if read == 0 then
    if ARGV[4] ~= '' then
        redis.call('HDEL', KEYS[4], ARGV[4])
    end
    return {0}
end
redis.call('LLEN', KEYS[3])
ensure_permitted(KEYS[5], {'ZREM'}, #malformed > 0 and {'RPUSH'} or {})
if #polled > 0 then
    claim(KEYS[4], ARGV[3], ARGV[4], 'poll', polled, ARGV[2])
end
for i = 1, #polled, 2 do
    redis.call('ZREM', KEYS[1], polled[i])
end
for i = 1, #malformed, 2 do
    redis.call('RPUSH', KEYS[3], malformed[i], malformed[i + 1])
    redis.call('ZREM', KEYS[1], malformed[i + 1])
end
redis.call('LTRIM', KEYS[2], read, -1)
table.insert(polled, 1, #malformed / 2)
return polled
