-- Removes pending entries by their payloads.
-- KEYS   1 timeout set   2 ordered list
-- ARGV   1 'first': the entry offered first with this payload | 'all': every entry with one of the payloads
--          | 'others': every entry with none of them   2.. payloads
-- Reply  how many entries were removed
-- Cost   one pass over the list to find them, one to remove them
redis.call('ZCARD', KEYS[1])
local which, listed = ARGV[1], {}
for i = 2, #ARGV do
    listed[ARGV[i]] = true
end
local found, at, searching = {}, 0, true
while searching do
    local entries = redis.call('LRANGE', KEYS[2], at, at + CHUNK - 1)
    for _, entry in ipairs(entries) do
        local payload = payload_of(entry)
        if payload and (listed[payload] or false) ~= (which == 'others') then
            found[#found + 1] = entry
            if which == 'first' then
                break
            end
        end
    end
    searching = #entries == CHUNK and not (which == 'first' and #found > 0)
    at = at + CHUNK
end
remove_entries(KEYS[1], KEYS[2], found)
return #found
