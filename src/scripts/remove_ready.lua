-- Removes elements of a list by their payloads.
-- KEYS   1 list
-- ARGV   1 'all': every element with one of the payloads | 'others': every element with none of them   2.. payloads
-- Reply  how many elements were removed
-- Cost   one pass over the list to find them, one to remove them
local named, others = {}, ARGV[1] == 'others'
for i = 2, #ARGV do
    named[ARGV[i]] = true
end
local found, same, at = {}, nil, 0
repeat
    local elements = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
    for i, element in ipairs(elements) do
        if (named[element] or false) ~= others then
            found[#found + 1] = at + i - 1
            same = element
        end
    end
    at = at + CHUNK
until #elements < CHUNK
remove_at(KEYS[1], found, same)
return #found
