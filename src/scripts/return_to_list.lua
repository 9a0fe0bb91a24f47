-- Pushes popped payloads that no taker received back to the end of the target where they were popped.
-- KEYS   1 target   2 receipt: says that this return was done   3 scratch
-- ARGV   1 'LPUSH' | 'RPUSH'   2 ms for which the receipt is kept   3.. payloads, in the order of the pushes
-- Reply  1, or 0 if an earlier try did it and its reply was lost
-- Cost   O(1) per payload
redis.call('LLEN', KEYS.target)
ensure_permitted({}, {ARGV[1]})
if not redis.call('SET', KEYS.receipt, '1', 'NX', 'PX', ARGV[2]) then
    return 0
end
for i = 3, #ARGV do
    if ARGV[1] == 'LPUSH' then
        redis.call('LPUSH', KEYS.target, ARGV[i])
    else
        redis.call('RPUSH', KEYS.target, ARGV[i])
    end
end
return 1
