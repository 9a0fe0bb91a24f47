-- Deletes the pending entries: all of them, if nothing travels with any; otherwise a part, from the head on,
-- and forgets the jobs that they are.
-- KEYS   1 timeout set   2 ordered list   3 scratch   4 jobs   5 notes   6 more notes
-- Reply  {how many are gone, how many are left}
-- Cost   O(log n) for each of 1,000 entries at most; the one with which 1 MB is exceeded is the last. Of all,
--        that of UNLINK
local MOST, BYTES = 1000, 1048576
local notes = redis.pcall('HLEN', KEYS.notes)
local length, count = redis.pcall('LLEN', KEYS.ordered_list), redis.pcall('ZCARD', KEYS.timeout_set)
if type(notes) ~= 'number' or notes == 0 or type(length) ~= 'number' or type(count) ~= 'number' then
    -- They may have another type. An older ACL does not permit UNLINK, or a service does not have it.
    if type(redis.pcall('UNLINK', KEYS.ordered_list, KEYS.timeout_set)) ~= 'number' then
        redis.call('DEL', KEYS.ordered_list, KEYS.timeout_set)
    end
    return {math.max(tonumber(length) or 1, tonumber(count) or 1), 0}
elseif length + count == 0 then
    return {0, 0}
end
local entries, bytes, longest = {}, 0, 1
local most = math.min(length > 0 and length or count, MOST)
while #entries < most and bytes <= BYTES do
    local wanted = math.min(#entries == 0 and 16 or 64, most - #entries, math.max(1, math.floor((BYTES - bytes) / longest)))
    local first, last = string.format('%d', #entries), string.format('%d', #entries + wanted - 1)
    local some
    if length > 0 then
        some = redis.call('LRANGE', KEYS.ordered_list, first, last)
    else
        -- The list is being rebuilt, or was deleted by hand.
        some = redis.call('ZRANGE', KEYS.timeout_set, first, last)
    end
    for _, entry in ipairs(some) do
        entries[#entries + 1] = entry
        bytes, longest = bytes + #entry, math.max(longest, #entry)
    end
end
local ids, fields = jobs_of(entries)
ensure_permitted({'ZREM'}, {})
redis.call('ZREM', KEYS.timeout_set, unpack(entries))
if length > 0 then
    redis.call('LTRIM', KEYS.ordered_list, #entries, -1)
end
forget(ids, fields)
return {#entries, math.max(redis.call('LLEN', KEYS.ordered_list), redis.call('ZCARD', KEYS.timeout_set))}
