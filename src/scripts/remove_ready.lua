-- Removes elements of a list by their payloads.
-- KEYS   1 list
-- ARGV   1 'all': every element with one of the payloads | 'others': every element with none of them   2.. payloads
-- Reply  how many elements were removed
-- Cost   one pass over the list to find them, one to remove them
local named, others = {}, ARGV[1] == 'others'
for i = 2, #ARGV do
    named[ARGV[i]] = true
end
-- All of them become equal to the first one, and then go in one pass.
local removed, at, same = 0, 0, nil
repeat
    local elements = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
    for i, element in ipairs(elements) do
        if (named[element] or false) ~= others then
            same = same or element
            redis.call('LSET', KEYS[1], at + i - 1, same)
            removed = removed + 1
        end
    end
    at = at + CHUNK
until #elements < CHUNK
if removed > 0 then
    redis.call('LREM', KEYS[1], removed, same)
end
return removed
