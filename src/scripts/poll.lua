-- Takes the entries offered first out of the queue, before they are due. A lost reply loses none of them.
-- KEYS   1 timeout set   2 ordered list   3 quarantine   4 claims   5 scratch   6 jobs
-- ARGV   1 most entries, 1..1000   2 ms for which claims are kept   3 id of this poll
-- Reply  {how many were quarantined, 1 if it came to the end of the list, else 0, 1 if some may be jobs, else
--        0, entry, score or '', entry, score or '', ...}
-- Cost   O(log n) per entry, malformed ones, too: about 1,000 of them. The one with which 1 MB is exceeded is
--        the last
local BYTES, MOST = 1048576, 1000
-- What the client does not take comes back as the job that it is. Those that it takes, it forgets: see
-- forget_jobs.lua.
local jobs = redis.pcall('HLEN', KEYS.jobs)
local are_jobs = type(jobs) == 'number' and math.min(jobs, 1) or 0
local polled = claimed(ARGV[3])
if polled then
    return {0, 0, are_jobs, unpack(polled)}
end
local most, read, is_end, malformed = tonumber(ARGV[1]), 0, false, {}
local bytes, count, longest = 0, 16, 1
polled = {}
while not is_end and #polled < 2 * most and read < MOST and bytes <= BYTES do
    count = math.min(count, most - #polled / 2, math.max(1, math.floor((BYTES - bytes) / longest)))
    local entries = redis.call('LRANGE', KEYS.ordered_list, read, read + count - 1)
    is_end, count = #entries < count, math.min(8 * count, 64)
    for _, entry in ipairs(entries) do
        if bytes > BYTES then
            is_end = false
            break
        end
        read = read + 1
        bytes, longest = bytes + #entry, math.max(longest, #entry)
        local score = redis.call('ZSCORE', KEYS.timeout_set, entry) or ''
        if payload_of(entry) then
            polled[#polled + 1] = entry
            polled[#polled + 1] = score
        else
            malformed[#malformed + 1] = score
            malformed[#malformed + 1] = entry
        end
    end
end
if read == 0 then
    return {0, 1, 0}
end
redis.call('LLEN', KEYS.quarantine)
ensure_permitted({'ZREM'}, #malformed > 0 and {'RPUSH'} or {})
if #polled > 0 then
    claim(ARGV[3], '', 'poll', polled, ARGV[2])
end
for i = 1, #polled, 2 do
    redis.call('ZREM', KEYS.timeout_set, polled[i])
end
for i = 1, #malformed, 2 do
    redis.call('RPUSH', KEYS.quarantine, malformed[i], malformed[i + 1])
    redis.call('ZREM', KEYS.timeout_set, malformed[i + 1])
end
redis.call('LTRIM', KEYS.ordered_list, read, -1)
return {#malformed / 2, is_end and 1 or 0, are_jobs, unpack(polled)}
