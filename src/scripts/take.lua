-- Pops payloads without blocking. A lost reply loses none of them.
-- KEYS   1 target   2 claims   3 scratch
-- ARGV   1 'LPOP' | 'RPOP'   2 most payloads   3 ms for which claims are kept   4 id of this pop
--        5 id of an earlier pop whose reply has arrived, or ''
-- Reply  {payload, payload, ...} in the order of the pops
-- Cost   O(1) per payload. The one with which 1 MB is exceeded is the last
local BYTES = 1048576
local payloads = claimed(ARGV[4])
if payloads then
    return payloads
end
local at_head = ARGV[1] == 'LPOP'
payloads = {}
local most, bytes, count, longest = tonumber(ARGV[2]), 0, 16, 1
repeat
    local taken = #payloads
    count = math.min(count, most - taken, math.max(1, math.floor((BYTES - bytes) / longest)))
    local chunk
    if at_head then
        chunk = redis.call('LRANGE', KEYS.target, taken, taken + count - 1)
    else
        chunk = redis.call('LRANGE', KEYS.target, -taken - count, -taken - 1)
    end
    for i = 1, #chunk do
        local payload = chunk[at_head and i or #chunk + 1 - i]
        if bytes <= BYTES then
            payloads[#payloads + 1] = payload
        end
        bytes, longest = bytes + #payload, math.max(longest, #payload)
    end
    local is_end = #chunk < count
    count = math.min(8 * count, 64)
until is_end or #payloads == most or bytes > BYTES
if #payloads == 0 then
    if ARGV[5] ~= '' then
        redis.call('HDEL', KEYS.claims, ARGV[5])
    end
    return payloads
end
claim(ARGV[4], ARGV[5], ARGV[1], payloads, ARGV[3])
local popped
if at_head then
    popped = redis.pcall('LTRIM', KEYS.target, #payloads, -1)
else
    popped = redis.pcall('LTRIM', KEYS.target, 0, -#payloads - 1)
end
if popped.err then
    unclaim(ARGV[4])
    return popped
end
return payloads
