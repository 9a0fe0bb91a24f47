-- The fields of the hash of jobs. A part of the scripts about jobs.
-- Provides  AHEAD, claimed_field, kind_of, first_of, due_of, entry_of, message_of, has_entry, is_of_message,
--           is_newer_field
-- The hash of jobs has for each id a field, which begins with its kind:
--   'p'  a job whose id is free once it is due
--   'd'  the same, with data (see parts/note.lua), until a receiver claims it
--   'h'  a job that holds its id until it is done: it is pending, or its payload is ready
--   'm'  the same, once a receiver has claimed it   'c'  the same, once somebody has asked to cancel it
-- Then: when the job was offered first (epoch ms, 6 bytes, big-endian), when its entry was due at first (like
-- that); and of 'm' and 'c', the id of the message, of the others the entry. A client that moved or removed
-- the entry may have left the field, so it counts only while the entry is pending, or what parts/holder.lua
-- says of 'h', 'm' and 'c' holds. To reschedule a job changes its score alone, unless it has data.
-- ms by which the clock of a Java client that moves entries may be ahead
local AHEAD = 600000

-- The field of the job of this field, once it is this message.
local function claimed_field(field, message)
    return 'm' .. string.sub(field, 2, 13) .. message
end

local function kind_of(field)
    return string.sub(field, 1, 1)
end

local unpack_time = struct.unpack

local function first_of(field)
    local high, low = unpack_time('>I2I4', field, 2)
    return high * 4294967296 + low
end

local function due_of(field)
    local high, low = unpack_time('>I2I4', field, 8)
    return high * 4294967296 + low
end

local function entry_of(field)
    return string.sub(field, 14)
end

local message_of = entry_of

-- Whether it is the field of a job that this message is; or, without an id, that any message is.
local function is_of_message(field, message)
    return #field > 13 and string.find(field, '^[mc]') and (not message or message_of(field) == message)
end

-- Whether it is a field of a job that is pending, or was.
local function has_entry(field)
    return #field > 13 and string.find(field, '^[pdh]')
end

-- Whether a later version of redelay wrote it: it has a kind that is not known here.
local function is_newer_field(field)
    return #field > 13 and string.find(field, '^%l') and not string.find(field, '^[pdhmc]')
end
