-- The records of messages that receivers claimed. A part of the scripts that read or write them.
-- Provides  header, is_readable, counts, stored_policy, policy_of, first_of, payload_in, free_id
-- A record is: version (1 byte), delivery number (4), failures (2), losses (2), policy (9), first claim in epoch ms (6),
-- payload. The numbers are big-endian. The policy is that of the receiver that claimed it last: most failures (2), most
-- losses (2), lease in ms (4), dead letters 'k'ept, 's'ent or 'd'iscarded (1). With 24 bytes before it, a payload of 100
-- bytes fits into 128 bytes of the server's memory.
-- The first 24 bytes of a record.
local function header(delivery, failed, lost, policy, first)
    return struct.pack('>BI4HH', 1, delivery, math.min(failed, 65535), math.min(lost, 65535)) .. policy .. first
end

-- Whether it is a record of this version, and not something else that was written into the hash.
local function is_readable(record)
    return #record >= 24 and string.byte(record) == 1
end

-- Delivery number, failures, losses.
local function counts(record)
    return struct.unpack('>I4HH', record, 2)
end

local function stored_policy(record)
    return string.sub(record, 10, 18)
end

-- When it was claimed for the first time, as it is stored.
local function first_of(record)
    return string.sub(record, 19, 24)
end

-- Most failures, most losses, lease in ms, and what becomes of dead letters.
local function policy_of(record)
    return struct.unpack('>HHI4c1', record, 10)
end

local function payload_in(record)
    return string.sub(record, 25)
end

-- An id that is not in a hash, of which `read` reads a field: this one, unless it is that of something else,
-- which must not be overwritten. Only what was written there by hand has it.
local function free_id(read, id)
    for number = 65535, 0, -1 do
        if type(read(id)) ~= 'string' then
            break
        end
        id = string.sub(id, 1, 14) .. struct.pack('>I2', number)
    end
    return id
end
