-- The records of messages that receivers claimed. A part of the scripts that read or write them.
-- Provides  new_record, changed, is_readable, is_newer, LATER, NEVER, counts, stored_policy, policy_of,
--           first_claim_of, payload_in, data_in, with_data, with_error, claimed_of, error_in, claimed_again,
--           free_id
-- A record is: version (1 byte), delivery number (4), failures (2), losses (2), policy (9), first claim in
-- epoch ms (6), payload. The numbers are big-endian. The policy is that of the receiver that claimed it last:
-- most failures (2), most losses (2), lease in ms (4), dead letters 'k'ept, 's'ent or 'd'iscarded (1). With
-- 24 bytes before it, a payload of 100 bytes fits into 128 bytes of the server's memory.
-- A message that is a job with data has version 2. Before the payload, it has: the last claim in epoch ms
-- (6), the length of the data (2) and of the last error (2), the data (see parts/note.lua), the last error.
local WITHOUT_DATA, WITH_DATA = 1, 2
-- Below this, other versions are those of later programs. Text that was written by hand begins beyond it.
local VERSIONS = 32
-- For this many ms, a message of a later version is left to a program that knows it.
local LATER = 5000
-- The delivery number of a job that has expired before it was delivered, and waits to become a dead letter.
local NEVER = 0

-- The record of a message that is claimed for the first time, before its payload. `data` is what travels with
-- a job, if there is any.
local function new_record(policy, first, data)
    local numbers = '\0\0\0\1\0\0\0\0' .. policy .. first
    if data then
        return string.char(WITH_DATA) .. numbers .. first .. struct.pack('>HH', #data, 0) .. data
    end
    return string.char(WITHOUT_DATA) .. numbers
end

-- The same record with these numbers.
local function changed(record, delivery, failed, lost, policy)
    return string.sub(record, 1, 1) .. struct.pack('>I4HH', delivery, math.min(failed, 65535), math.min(lost, 65535))
        .. policy .. string.sub(record, 19)
end

-- Whether it is a record of these versions, and not something else that was written into the hash.
local function is_readable(record)
    local version = string.byte(record)
    if version == WITH_DATA and #record >= 34 then
        local data, error = struct.unpack('>HH', record, 31)
        return #record >= 34 + data + error
    end
    return version == WITHOUT_DATA and #record >= 24
end

-- Whether a later version of redelay wrote it.
local function is_newer(record)
    local version = string.byte(record)
    return #record >= 24 and version > WITH_DATA and version < VERSIONS
end

-- Delivery number, failures, losses.
local function counts(record)
    return struct.unpack('>I4HH', record, 2)
end

local function stored_policy(record)
    return string.sub(record, 10, 18)
end

-- When it was claimed for the first time, as it is stored.
local function first_claim_of(record)
    return string.sub(record, 19, 24)
end

-- Most failures, most losses, lease in ms, and what becomes of dead letters.
local function policy_of(record)
    return struct.unpack('>HHI4c1', record, 10)
end

local function payload_in(record)
    if string.byte(record) == WITHOUT_DATA then
        return string.sub(record, 25)
    end
    local data, error = struct.unpack('>HH', record, 31)
    return string.sub(record, 35 + data + error)
end

-- What travels with the job; nil for a message that is none, or one without data.
local function data_in(record)
    if string.byte(record) == WITH_DATA then
        local length = struct.unpack('>H', record, 31)
        local data = string.sub(record, 35, 34 + length)
        return is_data(data) and data or nil
    end
end

-- The record with this data and this last error. `claimed` is the time of the last claim, as it is stored.
local function with_data(record, claimed, data, error)
    return string.char(WITH_DATA) .. string.sub(record, 2, 24) .. claimed .. struct.pack('>HH', #data, #error) .. data .. error
        .. payload_in(record)
end

-- The last claim, epoch ms, and the last error, of a record with data.
local function claimed_of(record)
    local high, low = struct.unpack('>I2I4', record, 25)
    return high * 4294967296 + low
end

local function error_in(record)
    local data, error = struct.unpack('>HH', record, 31)
    return string.sub(record, 35 + data, 34 + data + error)
end

local function claimed_again(record, claimed)
    if string.byte(record) == WITHOUT_DATA then
        return record
    end
    return string.sub(record, 1, 24) .. claimed .. string.sub(record, 31)
end

local function with_error(record, error)
    local data = data_in(record)
    return data and with_data(record, string.sub(record, 25, 30), data, string.sub(error, 1, 1000)) or record
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
