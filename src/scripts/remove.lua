-- Removes pending entries by their payloads, in a part of the list, and forgets the jobs that they are.
-- KEYS   1 timeout set   2 list: the ordered list   3 scratch   4 jobs   5 notes   6 more notes
-- ARGV   1 'first': the entry offered first with this payload, if the list is one part | 'all': every entry
--        with one of the payloads
--          | 'all_except': every entry with none of them
--          2 index from which on the list is searched towards its head, or -1
--        3 a text that is no entry   4.. payloads
-- Reply  {how many entries were removed, the index of the next part, or -1}
-- Cost   reads 10,000 entries at most, and 4 MB of them, unless one is longer; and a native scan of the list
--        from its nearer end, and some 20 ms to mark what is far from both
redis.call('ZCARD', KEYS.timeout_set)
local which, listed = ARGV[1], {}
for i = 4, #ARGV do
    listed[ARGV[i]] = true
end
local only = which ~= 'all_except' and #ARGV == 4 and ARGV[4]
local found, positions, most = {}, {}, most_forgotten()
local next = search(tonumber(ARGV[2]), function(entry, position, distance)
    local payload = (not only or may_have(entry, only)) and payload_of(entry)
    if payload and (listed[payload] or false) ~= (which == 'all_except') then
        local n = which == 'first' and 1 or #found + 1
        found[n], positions[n] = entry, position
    end
    return #found >= most or are_far(#found, distance)
end)
if #found == 0 or which == 'first' and next >= 0 then
    return {0, next}
end
local ids, fields = jobs_of(found)
ensure_permitted({'LREM'}, {})
redis.call('LSET', KEYS.list, positions[1], found[1]) -- changes nothing, but fails without the permission
for i = 1, #found, CHUNK do
    redis.call('ZREM', KEYS.timeout_set, unpack(found, i, math.min(i + CHUNK - 1, #found)))
end
remove_at(positions, ARGV[3])
forget(ids, fields)
return {#found, next}
