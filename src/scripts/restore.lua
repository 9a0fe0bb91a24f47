-- Puts polled entries back to the head of the ordered list, with the due times they had.
-- KEYS   1 timeout set   2 ordered list   3 wake-up channel
-- ARGV   score or '', entry, score or '', entry, ... in the order in which they were polled
-- Reply  how many were put back; a second try puts none back twice
-- Cost   O(log n) per entry
redis.call('LLEN', KEYS[2])
local restored = {}
for i = #ARGV - 1, 1, -2 do
    local score, entry = ARGV[i], ARGV[i + 1]
    if score == '' or redis.call('ZADD', KEYS[1], 'NX', score, entry) == 1 then
        redis.call('LPUSH', KEYS[2], entry)
        restored[#restored + 1] = entry
        restored[entry] = score
    end
end
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if head and restored[head] then
    redis.call('PUBLISH', KEYS[3], restored[head])
end
return #restored
