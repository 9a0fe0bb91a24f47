-- Deletes the payloads of a list, and forgets the jobs that they are: all at once if nothing travels with any; otherwise in parts, from
-- the head on.
-- KEYS   1 target   2 timeout set   3 jobs   4 notes   5 more notes
-- Reply  {how many there were in this part, 1 if there are others, else 0}
-- Cost   O(log n) for each of 1,000 payloads at most; the one with which 1 MB is exceeded is the last. At once: that of UNLINK
local MOST, BYTES = 1000, 1048576
local length, travels = redis.call('LLEN', KEYS.target), notes_are_there()
local payloads, bytes, longest = {}, 0, 1
while travels and #payloads < math.min(length, MOST) and bytes <= BYTES do
    local wanted = math.min(#payloads == 0 and 16 or 64, MOST - #payloads, math.max(1, math.floor((BYTES - bytes) / longest)))
    for _, payload in ipairs(redis.call('LRANGE', KEYS.target, #payloads, #payloads + wanted - 1)) do
        payloads[#payloads + 1] = payload
        bytes, longest = bytes + #payload, math.max(longest, #payload)
    end
end
local is_part = #payloads > 0 and #payloads < length
if is_part then
    redis.call('LTRIM', KEYS.target, #payloads, -1)
elseif type(redis.pcall('UNLINK', KEYS.target)) ~= 'number' then
    -- An older ACL does not permit it, or a service does not have it.
    redis.call('DEL', KEYS.target)
end
for _, payload in ipairs(payloads) do
    forget_ready(payload)
end
return is_part and {#payloads, 1} or {length, 0}
