-- Removes elements of a list by their payloads, in a part of it, and forgets the jobs that they are.
-- KEYS   1 list: the target   2 scratch   3 timeout set   4 jobs   5 notes   6 more notes
-- ARGV   1 'all': every element with one of the payloads | 'all_except': every element with none of them
--        2 index from which on the list is searched towards its head, or -1   3 a text that is no payload
--        4.. payloads
-- Reply  {how many elements were removed, the index of the next part, or -1}
-- Cost   reads 10,000 elements at most, and 4 MB of them, unless one is longer; and a native scan of the list
--        from its nearer end, and some 20 ms to mark what is far from both
local listed, except = {}, ARGV[1] == 'all_except'
for i = 4, #ARGV do
    listed[ARGV[i]] = true
end
local positions, found, most = {}, {}, most_forgotten()
local next = search(tonumber(ARGV[2]), function(element, position, distance)
    if (listed[element] or false) ~= except then
        positions[#positions + 1] = position
        found[#found + 1] = element
    end
    return #found >= most or are_far(#found, distance)
end)
if #positions > 0 then
    local now = time_of_jobs()
    ensure_permitted({'LREM'}, {})
    redis.call('LSET', KEYS.list, positions[1], found[1]) -- changes nothing, but fails without the permission
    remove_at(positions, ARGV[3])
    if now then
        forget_ready(found, now)
    end
end
return {#positions, next}
