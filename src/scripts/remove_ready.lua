-- Removes elements of a list by their payloads.
-- KEYS   1 list
-- ARGV   1 'all': every element with one of the payloads | 'others': every element with none of them   2.. payloads
-- Reply  how many elements were removed
-- Cost   one pass over the list for each distinct payload that is removed, and one to find the others
local unwanted = {}
if ARGV[1] == 'all' then
    for i = 2, #ARGV do
        unwanted[ARGV[i]] = true
    end
else
    local kept = {}
    for i = 2, #ARGV do
        kept[ARGV[i]] = true
    end
    local at = 0
    repeat
        local elements = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
        for _, element in ipairs(elements) do
            if not kept[element] then
                unwanted[element] = true
            end
        end
        at = at + CHUNK
    until #elements < CHUNK
end
local removed = 0
for payload in pairs(unwanted) do
    removed = removed + redis.call('LREM', KEYS[1], 0, payload)
end
return removed
