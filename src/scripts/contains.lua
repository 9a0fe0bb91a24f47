-- Tells whether each of the payloads is in a list: in the ordered list (with entry.lua) or in the target (with raw_payload.lua).
-- KEYS   1 ordered list or target
-- ARGV   payloads
-- Reply  1 or 0
-- Cost   one pass over the list
local missing, count = {}, 0
for _, payload in ipairs(ARGV) do
    if not missing[payload] then
        missing[payload] = true
        count = count + 1
    end
end
local only = #ARGV == 1 and ARGV[1]
local at = 0
while count > 0 do
    local elements = redis.call('LRANGE', KEYS[1], at, at + CHUNK - 1)
    for _, element in ipairs(elements) do
        local payload = (not only or may_have(element, only)) and payload_of(element)
        if payload and missing[payload] then
            missing[payload] = nil
            count = count - 1
        end
    end
    if #elements < CHUNK then
        break
    end
    at = at + CHUNK
end
return count == 0 and 1 or 0
