-- Tells whether each of the payloads is in a list: in the ordered list (with entry.lua) or in the target
-- (with raw_payload.lua).
-- KEYS   1 list: the ordered list, or the target
-- ARGV   payloads
-- Reply  1 or 0; or -1 if they are not among the last ones, and there are others
-- Cost   reads the last 10,000 elements at most, and 4 MB of them, unless one is longer
local missing, count = {}, 0
for _, payload in ipairs(ARGV) do
    if not missing[payload] then
        missing[payload] = true
        count = count + 1
    end
end
local only = #ARGV == 1 and ARGV[1]
local next = search(-1, function(element)
    local payload = count > 0 and (not only or may_have(element, only)) and payload_of(element)
    if payload and missing[payload] then
        missing[payload] = nil
        count = count - 1
    end
end)
return count == 0 and 1 or next < 0 and 0 or -1
