-- Takes the oldest offered entries out of the queue before they are due.
-- KEYS   1 timeout set   2 ordered list   3 quarantine list
-- ARGV   1 most entries
-- Reply  {entry, score or false, entry, score or false, ...}
-- Cost   O(log n) per entry
redis.call('ZCARD', KEYS[1])
redis.call('LLEN', KEYS[3])
local most, polled = tonumber(ARGV[1]), {}
while #polled < 2 * most do
    local entries = redis.call('LPOP', KEYS[2], math.min(most - #polled / 2, 1000))
    if not entries or #entries == 0 then
        break
    end
    for _, entry in ipairs(entries) do
        local score = redis.call('ZSCORE', KEYS[1], entry)
        redis.call('ZREM', KEYS[1], entry)
        if payload_of(entry) then
            polled[#polled + 1] = entry
            polled[#polled + 1] = score
        else
            redis.call('RPUSH', KEYS[3], score or '', entry)
        end
    end
end
return polled
