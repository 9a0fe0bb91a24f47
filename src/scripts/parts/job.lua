-- Finds jobs by their ids. A part of the scripts about jobs, behind parts/field.
-- Provides  job_of

-- The entry of a pending job, its due time, and when it was offered first; or nil. Then the field of the id,
-- or nil.
local function job_of(id)
    local field = redis.call('HGET', KEYS.jobs, id) or nil
    if field and has_entry(field) then
        local entry = entry_of(field)
        local due = redis.call('ZSCORE', KEYS.timeout_set, entry)
        if due then
            return entry, tonumber(due), first_of(field), field
        end
    end
    return nil, nil, nil, field
end
