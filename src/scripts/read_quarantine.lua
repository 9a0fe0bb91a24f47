-- Reads a page of the quarantine, from its head or behind what was read before.
-- KEYS   1 quarantine
-- ARGV   1 most pairs
--        2.. what was read: how many pairs were in front of it at most; 1 to read on behind it, 0 to read on
--        with it; score; entry; ... First the last one, then the one behind it, if it is known, then those in
--        front of it
-- Reply  {how many pairs are in front of the first one that was not read, how many of these are returned,
--        too, score, entry, ...}
-- Cost   O(1) for each, and a walk from the nearer end for each of a few LRANGE; if pairs have left the list,
--        native scans of what was read before. Up to 500 pairs and a few in front of them, and 1 MB, unless
--        they are longer than those before
local from
for i = 2, #ARGV, 4 do
    local before, is_behind, score, entry = unpack(ARGV, i, i + 3)
    if from and is_behind == '1' then
        break
    end
    local at = 2 * before
    local there = redis.call('LRANGE', KEYS.quarantine, at, at + 1)
    if there[1] ~= score or there[2] ~= entry then
        -- What leaves the list moves the others towards the head. So what is further back has left, and has
        -- come again.
        at = find_pair(score, entry, at + 2)
    end
    if at then
        local place = at / 2 + is_behind
        from = math.min(from or place, place)
    end
end
from = from or 0
-- Those in front, so that the next call finds its place although all that this one returns has left.
local known, bytes = 0, 0
while known < from and known < 16 and bytes < 65536 do
    known = known + 1
    local pair = redis.call('LRANGE', KEYS.quarantine, 2 * (from - known), 2 * (from - known) + 1)
    bytes = bytes + #(pair[1] or '') + #(pair[2] or '')
end
local function read(first, last)
    return redis.call('LRANGE', KEYS.quarantine, first, last)
end
local length = redis.call('LLEN', KEYS.quarantine)
return add_page({from, known}, length, read, 2 * (from - known), false, 2 * (ARGV[1] + known), 2 * (1 + known))
