-- Pops payloads without blocking. A lost reply loses none of them.
-- KEYS   1 target   2 claims
-- ARGV   1 'LPOP' | 'RPOP'   2 most payloads   3 ms for which claims are kept   4 id of this pop
--        5 id of an earlier pop whose reply has arrived, or ''
-- Reply  {payload, payload, ...} in the order of the pops
-- Cost   O(1) per payload
local payloads = claimed(KEYS[2], ARGV[4])
if payloads then
    return payloads
end
local at_head = ARGV[1] == 'LPOP'
if at_head then
    payloads = redis.call('LRANGE', KEYS[1], 0, ARGV[2] - 1)
else
    payloads = redis.call('LRANGE', KEYS[1], -ARGV[2], -1)
    for i = 1, math.floor(#payloads / 2) do
        payloads[i], payloads[#payloads + 1 - i] = payloads[#payloads + 1 - i], payloads[i]
    end
end
if #payloads == 0 then
    if ARGV[5] ~= '' then
        redis.call('HDEL', KEYS[2], ARGV[5])
    end
    return payloads
end
claim(KEYS[2], ARGV[4], ARGV[5], ARGV[1], payloads, ARGV[3])
local popped
if at_head then
    popped = redis.pcall('LTRIM', KEYS[1], #payloads, -1)
else
    popped = redis.pcall('LTRIM', KEYS[1], 0, -#payloads - 1)
end
if popped.err then
    unclaim(KEYS[2], ARGV[4])
    return popped
end
return payloads
