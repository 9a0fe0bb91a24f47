-- A list of payloads: in front of a script that is made for entries, in the place of entry.lua.
local function payload_of(element)
    return element
end

local function may_have(element, payload)
    return element == payload
end
