-- Deletes the payloads of a list: all of them, if nothing travels with any; otherwise a part, from the head
-- on, and forgets the jobs that they are.
-- KEYS   1 target   2 timeout set   3 jobs   4 notes   5 more notes   6 scratch
-- Reply  {how many are gone, how many are left}
-- Cost   O(log n) for each of 1,000 payloads at most; the one with which 1 MB is exceeded is the last. Of
--        all, that of UNLINK
local MOST, BYTES = 1000, 1048576
local length = redis.pcall('LLEN', KEYS.target)
if length == 0 then
    return {0, 0}
end
local now = type(length) == 'number' and time_of_jobs()
if not now then
    -- It may have another type. An older ACL does not permit UNLINK, or a service does not have it.
    if type(redis.pcall('UNLINK', KEYS.target)) ~= 'number' then
        redis.call('DEL', KEYS.target)
    end
    return {tonumber(length) or 1, 0}
end
local payloads, bytes, longest = {}, 0, 1
local most = math.min(length, MOST)
while #payloads < most and bytes <= BYTES do
    local wanted = math.min(#payloads == 0 and 16 or 64, most - #payloads, math.max(1, math.floor((BYTES - bytes) / longest)))
    for _, payload in ipairs(redis.call('LRANGE', KEYS.target, #payloads, #payloads + wanted - 1)) do
        payloads[#payloads + 1] = payload
        bytes, longest = bytes + #payload, math.max(longest, #payload)
    end
end
redis.call('LTRIM', KEYS.target, #payloads, -1)
forget_ready(payloads, now)
return {#payloads, length - #payloads}
