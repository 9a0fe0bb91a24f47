-- Takes the entries offered first out of the queue, before they are due. A lost reply loses none of them.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 claim: a copy of what this poll takes
-- ARGV   1 most entries, 1..1000   2 ms for which the claim is kept
-- Reply  {how many were quarantined, entry, score or '', entry, score or '', ...}; a number is first: see scripts.rs
-- Cost   O(log n) per entry
-- After a lost reply the same poll is sent again, and returns what the first try took. After its reply the claim is deleted.
if redis.call('EXISTS', KEYS[4]) == 1 then
    local claimed = redis.call('LRANGE', KEYS[4], 0, -1)
    table.insert(claimed, 1, 0)
    return claimed
end
redis.call('ZCARD', KEYS[1])
redis.call('LLEN', KEYS[3])
local most, polled, quarantined = tonumber(ARGV[1]), {}, 0
while #polled < 2 * most do
    local entries = redis.call('LPOP', KEYS[2], most - #polled / 2)
    if not entries or #entries == 0 then
        break
    end
    for _, entry in ipairs(entries) do
        local score = redis.call('ZSCORE', KEYS[1], entry) or ''
        redis.call('ZREM', KEYS[1], entry)
        if payload_of(entry) then
            polled[#polled + 1] = entry
            polled[#polled + 1] = score
        else
            redis.call('RPUSH', KEYS[3], score, entry)
            quarantined = quarantined + 1
        end
    end
end
if #polled > 0 then
    redis.call('RPUSH', KEYS[4], unpack(polled))
    redis.call('PEXPIRE', KEYS[4], ARGV[2])
end
table.insert(polled, 1, quarantined)
return polled
