-- Finds jobs by their ids. A part of the scripts about jobs.
-- Provides  field_of, first_of, due_of, entry_of, job_of
-- The hash of jobs has for each id: when the job was offered first, when its entry was due at first (epoch ms, 6 bytes each,
-- big-endian), and its entry. A client that moved or removed the entry may have left the field, so it counts only while the entry is
-- pending. To reschedule a job changes its score alone.

local function field_of(first, due, entry)
    local first_high, due_high = math.floor(first / 4294967296), math.floor(due / 4294967296)
    return struct.pack('>I2I4I2I4', first_high, first % 4294967296, due_high, due % 4294967296) .. entry
end

local unpack_time = struct.unpack

local function first_of(field)
    local high, low = unpack_time('>I2I4', field)
    return high * 4294967296 + low
end

local function due_of(field)
    local high, low = unpack_time('>I2I4', field, 7)
    return high * 4294967296 + low
end

local function entry_of(field)
    return string.sub(field, 13)
end

-- The entry of a pending job, its due time, when it was offered first, and its field; or nil.
local function job_of(id)
    local field = redis.call('HGET', KEYS.jobs, id)
    if field and #field > 12 then
        local entry = entry_of(field)
        local due = redis.call('ZSCORE', KEYS.timeout_set, entry)
        if due then
            return entry, tonumber(due), first_of(field), field
        end
    end
end
