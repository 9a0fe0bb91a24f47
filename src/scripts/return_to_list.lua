-- Pushes popped payloads that nobody received back to the end of the target where they were popped.
-- KEYS   1 target   2 receipt: says that this return was done   3 scratch
-- ARGV   1 'LPUSH' | 'RPUSH'   2 ms for which the receipt is kept   3.. payloads, in the order of the pushes
-- Reply  1, or 0 if an earlier try did it and its reply was lost
-- Cost   O(1) per payload
redis.call('LLEN', KEYS[1])
ensure_permitted(KEYS[3], {}, {ARGV[1]})
if not redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[2]) then
    return 0
end
for i = 3, #ARGV do
    redis.call(ARGV[1], KEYS[1], ARGV[i])
end
return 1
