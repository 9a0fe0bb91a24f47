-- Forgets jobs whose ready payloads are removed, and what travels with them. A part of the scripts that remove payloads, behind
-- parts/field and parts/note.
-- Provides  notes_are_there, forget_ready
local LOOKED_AT = 1000 -- notes of jobs that are pending, or are pending again

-- Whether anything travels with any payload. Fails, before the first write, if it may not be removed.
local function notes_are_there()
    local count = redis.pcall('HLEN', KEYS.notes)
    if type(count) ~= 'number' or count == 0 then
        return false
    end
    redis.call('ZSCORE', KEYS.timeout_set, '')
    redis.call('HGET', KEYS.jobs, '')
    check_notes()
    redis.call('HDEL', KEYS.jobs, '')
    return true
end

local function forget_first(payload)
    local sha1, data, is_first = redis.sha1hex(payload), nil, true
    local known = redis.call('HGET', KEYS.notes, sha1)
    local has_others = false
    if known then
        data, has_others = first_note(known)
    end
    for _ = 1, LOOKED_AT do
        if not data then
            return
        end
        local id = id_in(data)
        local entry = entry_with(id, payload)
        if not redis.call('ZSCORE', KEYS.timeout_set, entry) then
            local field = redis.call('HGET', KEYS.jobs, id)
            if field and has_entry(field) and entry_of(field) == entry then
                redis.call('HDEL', KEYS.jobs, id)
            end
            if is_first then
                remove_first_note(sha1, has_others)
            else
                redis.call('ZREM', KEYS.more_notes, sha1 .. data)
            end
            return
        end
        data = has_others and next_notes(sha1, not is_first and data or nil, 1)[1]
        is_first = false
    end
end

-- A ready payload is removed. Of equal ones, it is the job that was due first. What the server refuses is left to a sweep.
local function forget_ready(payload)
    pcall(forget_first, payload)
end
