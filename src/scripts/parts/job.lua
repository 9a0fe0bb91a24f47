-- Finds jobs by their ids. A part of the scripts about jobs.
-- Provides  job_of, value_of
-- The hash of jobs has for each id: when the job was offered first, epoch ms (6 bytes, big-endian), and its entry. Whoever moved
-- or removed the entry may have left the field, so it counts only while the entry is pending.

-- The entry of a pending job, its due time and when it was offered first; or nil.
local function job_of(jobs, timeout_set, id)
    local field = redis.call('HGET', jobs, id)
    if field and #field > 6 then
        local entry = string.sub(field, 7)
        local due = redis.call('ZSCORE', timeout_set, entry)
        if due then
            local high, low = struct.unpack('>I2I4', field)
            return entry, tonumber(due), high * 4294967296 + low
        end
    end
end

local function value_of(first, entry)
    return struct.pack('>I2I4', math.floor(first / 4294967296), first % 4294967296) .. entry
end
