-- Reads packed entries; the formats are in wire/entry.rs. A part of every script that looks into an entry.
-- Provides  payload_of, may_have

-- Returns the payload, or nil if the entry is malformed.
local function payload_of(entry)
    local size, id_length = #entry, string.byte(entry, 1)
    local with_trailing
    if id_length and size >= id_length + 9 then
        local length = struct.unpack('<L', entry, id_length + 2)
        if length == size - id_length - 9 then
            return string.sub(entry, id_length + 10)
        elseif length < size - id_length - 9 then
            with_trailing = string.sub(entry, id_length + 10, id_length + 9 + length)
        end
    end
    if size >= 16 and struct.unpack('<L', entry, 9) == size - 16 then
        return string.sub(entry, 17)
    end
    return with_trailing
end

local find, byte = string.find, string.byte
-- Returns false if the entry cannot have this payload. Its lengths and its last bytes usually show that, and
-- no string is created for each payload.
local function may_have(entry, payload)
    local before, to_payload = #entry - #payload, 9 + (byte(entry, 1) or 0)
    if before <= to_payload then
        return find(entry, payload, before + 1, true)
    end
    -- There may be bytes behind the payload, or the entry has the legacy format.
    return struct.unpack('<L', entry, to_payload - 7) == #payload or before == 16
end
