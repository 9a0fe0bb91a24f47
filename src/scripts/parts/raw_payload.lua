-- Takes the place of entry.lua where a script for entries works on the target list, which holds bare
-- payloads.
-- Provides  payload_of, may_have

local function payload_of(element)
    return element
end

local function may_have(element, payload)
    return element == payload
end
