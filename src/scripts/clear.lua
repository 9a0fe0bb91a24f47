-- Deletes the pending entries, and forgets the jobs that they are: all at once if nothing travels with any; otherwise in parts, from
-- the head on.
-- KEYS   1 timeout set   2 ordered list   3 scratch   4 jobs   5 notes   6 more notes
-- Reply  {how many there were in this part, 1 if there are others, else 0}
-- Cost   O(log n) for each of 1,000 entries at most; the one with which 1 MB is exceeded is the last. At once: that of UNLINK
local MOST, BYTES = 1000, 1048576
local notes, length = redis.pcall('HLEN', KEYS.notes), redis.call('LLEN', KEYS.ordered_list)
local count = math.max(length, redis.call('ZCARD', KEYS.timeout_set))
local entries, bytes, longest = {}, 0, 1
while type(notes) == 'number' and notes > 0 and #entries < math.min(length, MOST) and bytes <= BYTES do
    local wanted = math.min(#entries == 0 and 16 or 64, MOST - #entries, math.max(1, math.floor((BYTES - bytes) / longest)))
    for _, entry in ipairs(redis.call('LRANGE', KEYS.ordered_list, #entries, #entries + wanted - 1)) do
        entries[#entries + 1] = entry
        bytes, longest = bytes + #entry, math.max(longest, #entry)
    end
end
local ids, fields = jobs_of(entries)
if #entries > 0 and #entries < length then
    ensure_permitted({'ZREM'}, {})
    redis.call('ZREM', KEYS.timeout_set, unpack(entries))
    redis.call('LTRIM', KEYS.ordered_list, #entries, -1)
    forget(ids, fields)
    return {#entries, 1}
end
-- An older ACL does not permit it, or a service does not have it.
if type(redis.pcall('UNLINK', KEYS.ordered_list, KEYS.timeout_set)) ~= 'number' then
    redis.call('DEL', KEYS.ordered_list, KEYS.timeout_set)
end
forget(ids, fields)
return {count, 0}
