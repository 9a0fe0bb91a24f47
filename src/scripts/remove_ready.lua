-- Removes elements of a list by their payloads.
-- KEYS   1 target   2 scratch
-- ARGV   1 'all': every element with one of the payloads | 'all_except': every element with none of them   2.. payloads
-- Reply  how many elements were removed
-- Cost   one pass over the target to find them, one to remove them
local listed, except = {}, ARGV[1] == 'all_except'
for i = 2, #ARGV do
    listed[ARGV[i]] = true
end
local positions, tombstone, at = {}, nil, 0
repeat
    local elements = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
    for i, element in ipairs(elements) do
        if (listed[element] or false) ~= except then
            positions[#positions + 1] = at + i - 1
            tombstone = tombstone or element
        end
    end
    at = at + CHUNK
until #elements < CHUNK
if #positions > 0 then
    ensure_permitted(KEYS[2], {'LREM'}, {})
    remove_at(KEYS[1], positions, tombstone)
end
return #positions
