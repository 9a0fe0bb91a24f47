-- Returns polled entries that nobody received to the front of the ordered list, with the due times they had.
-- KEYS   1 timeout set   2 ordered list   3 channel   4 receipt: says that this return was done
-- ARGV   1 ms for which the receipt is kept   2.. score or '', entry, score or '', entry, ... in the order of the poll
-- Reply  how many were returned; 0 if an earlier try did it and its reply was lost
-- Cost   O(log n) per entry
redis.call('ZCARD', KEYS[1])
redis.call('LLEN', KEYS[2])
if not redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[1]) then
    return 0
end
local restored = {}
for i = #ARGV - 1, 2, -2 do
    local score, entry = ARGV[i], ARGV[i + 1]
    if score == '' or redis.call('ZADD', KEYS[1], 'NX', score, entry) == 1 then
        redis.call('LPUSH', KEYS[2], entry)
        restored[#restored + 1] = entry
        restored[entry] = score
    end
end
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
-- Redisson throws if it receives anything but an integer.
if head and restored[head] and string.match(restored[head], '^%d+$') then
    redis.pcall('PUBLISH', KEYS[3], restored[head])
end
return #restored
