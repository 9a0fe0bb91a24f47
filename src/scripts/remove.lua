-- Removes pending entries by their payloads.
-- KEYS   1 timeout set   2 ordered list   3 scratch
-- ARGV   1 'first': the entry offered first with this payload | 'all': every entry with one of the payloads
--          | 'all_except': every entry with none of them   2.. payloads
-- Reply  how many entries were removed
-- Cost   one pass over the ordered list to find them, one to remove them
redis.call('ZCARD', KEYS[1])
local which, listed = ARGV[1], {}
for i = 2, #ARGV do
    listed[ARGV[i]] = true
end
local only = which ~= 'all_except' and #ARGV == 2 and ARGV[2]
local found, positions, at, searching = {}, {}, 0, true
while searching do
    local entries = redis.call('LRANGE', KEYS[2], at, at + CHUNK - 1)
    for i, entry in ipairs(entries) do
        local payload = (not only or may_have(entry, only)) and payload_of(entry)
        if payload and (listed[payload] or false) ~= (which == 'all_except') then
            found[#found + 1] = entry
            positions[#found] = at + i - 1
            if which == 'first' then
                break
            end
        end
    end
    searching = #entries == CHUNK and not (which == 'first' and #found > 0)
    at = at + CHUNK
end
if #found == 0 then
    return 0
end
ensure_permitted(KEYS[3], {'LREM'}, {})
redis.call('LSET', KEYS[2], positions[1], found[1]) -- changes nothing, but fails without the permission
for i = 1, #found, CHUNK do
    redis.call('ZREM', KEYS[1], unpack(found, i, math.min(i + CHUNK - 1, #found)))
end
remove_at(KEYS[2], positions, found[1])
return #found
