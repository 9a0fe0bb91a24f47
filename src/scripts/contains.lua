-- Whether each of the payloads is pending.
-- KEYS   1 ordered list
-- ARGV   payloads
-- Reply  1 or 0
-- Cost   one pass over the list
local wanted, left = {}, 0
for _, payload in ipairs(ARGV) do
    if not wanted[payload] then
        wanted[payload] = true
        left = left + 1
    end
end
local only = #ARGV == 1 and ARGV[1]
local at = 0
while left > 0 do
    local entries = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
    for _, entry in ipairs(entries) do
        local payload = (not only or may_have(entry, only)) and payload_of(entry)
        if payload and wanted[payload] then
            wanted[payload] = nil
            left = left - 1
        end
    end
    if #entries < CHUNK then
        break
    end
    at = at + CHUNK
end
return left == 0 and 1 or 0
