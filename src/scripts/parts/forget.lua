-- Forgets jobs whose entries are removed before they are due, and what travels with them: it would travel
-- with an equal payload that is offered later. A part of the scripts that remove entries, behind parts/field
-- and parts/note.
-- Provides  jobs_of, forget

-- The jobs with these entries: their ids, and their fields. Fails, before the first write, if what travels
-- with one may not be removed.
local function jobs_of(entries)
    local count, notes = redis.pcall('HLEN', KEYS.jobs), redis.pcall('HLEN', KEYS.notes)
    local ids, fields, travels = {}, {}, false
    if count == 0 then
        return ids, fields
    end
    if notes ~= 0 then
        -- Fails without the permission: what travels would stay.
        redis.call('HMGET', KEYS.jobs, '')
    end
    for first = 1, #entries, 1000 do
        local names = {}
        for n = first, math.min(first + 999, #entries) do
            names[#names + 1] = string.sub(entries[n], 2, 1 + (string.byte(entries[n]) or 0))
        end
        local known = redis.pcall('HMGET', KEYS.jobs, unpack(names))
        for n, id in ipairs(names) do
            local field = known[n]
            if field and has_entry(field) and entry_of(field) == entries[first + n - 1] then
                ids[#ids + 1], fields[#fields + 1] = id, field
                travels = travels or kind_of(field) ~= 'p'
            end
        end
    end
    if travels then
        check_notes()
    end
    return ids, fields
end

-- What the server refuses is left to a sweep.
local function forget(ids, fields)
    for n, id in ipairs(ids) do
        if kind_of(fields[n]) ~= 'p' then
            pcall(remove_note_of, id, fields[n])
        end
    end
    for first = 1, #ids, 1000 do
        redis.pcall('HDEL', KEYS.jobs, unpack(ids, first, math.min(first + 999, #ids)))
    end
end
