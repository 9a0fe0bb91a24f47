-- Finds the jobs that ready payloads are. A part of the scripts that claim or remove payloads, behind
-- parts/field and parts/note.
-- Provides  travelling, remove_notes
local SKIPPED = 1000 -- notes of pending jobs that are looked at for one payload

-- Whether the job with this data is due much later. The notes of a payload are in the order of their due
-- times: if this one is of a pending entry, so are those behind it, unless somebody has removed theirs.
local function is_later_than(now, data)
    return due_in(data) > now + AHEAD
end

-- Whether the note of this job, which has this field, is of its pending entry, which has this due time, or is
-- not there. The field says whether anything travels with the entry, and whether that holds its id: then
-- there is one such note. Any other may have been offered again for the same time: then the last note is that
-- of the entry.
local function is_pending(job, field, due)
    if not due then
        return false
    end
    local kind, holds = field and has_entry(field) and entry_of(field) == job.entry and kind_of(field), has_flag(job.data, HOLDS)
    if kind == 'p' or kind and (kind == 'h') ~= holds then
        return false
    elseif holds then
        return true
    elseif tonumber(due) ~= due_in(job.data) then
        return false
    end
    local last = last_note(job.sha1, due, job.id, false)
    return not last or job.is_later and last == job.data
end

-- The next note of this payload, behind this data, whose entry is not pending; and the field of its id. Many
-- that are pending may come first: those that were offered for times which were over.
local function later_note(sha1, data, payload, now)
    local looked_at, count = 0, 1
    while looked_at < SKIPPED do
        local jobs, entries, ids = {}, {}, {}
        for i, later in ipairs(next_notes(sha1, data, count)) do
            ids[i] = id_in(later)
            entries[i] = entry_with(ids[i], payload)
            jobs[i] = {sha1 = sha1, data = later, note = later, id = ids[i], entry = entries[i], is_later = true}
        end
        if #jobs == 0 then
            return nil
        end
        local dues, fields = redis.call('ZMSCORE', KEYS.timeout_set, unpack(entries)), redis.call('HMGET', KEYS.jobs, unpack(ids))
        for i, job in ipairs(jobs) do
            job.is_pending_again = dues[i]
            if not is_pending(job, fields[i], dues[i]) then
                return job, fields[i]
            elseif is_later_than(now, job.data) then
                return nil
            end
        end
        looked_at, count, data = looked_at + #jobs, 64, jobs[#jobs].data
    end
end

-- What becomes of the id: a message holds it if it still has this job, whose field is kept then. Another job
-- may have it: one that does not hold its id may be offered again, with the same payload, before it is
-- claimed.
local function take_id(job, field)
    local is_ours = field and entry_of(field) == job.entry
    if is_ours and kind_of(field) == 'h' and has_flag(job.data, HOLDS) then
        job.held = field
    else
        job.data = without_hold(job.data)
        job.frees = is_ours and kind_of(field) == 'd' and not job.is_pending_again
    end
end

-- What travels with these payloads, which are ready at this time, epoch ms: a job for the numbers of some of
-- them.
local function travelling(payloads, now)
    local sha1s, jobs, numbers, entries, ids, first, again = {}, {}, {}, {}, {}, {}, {}
    for i, payload in ipairs(payloads) do
        sha1s[i] = redis.sha1hex(payload)
    end
    for i, known in ipairs(redis.call('HMGET', KEYS.notes, unpack(sha1s))) do
        local sha1 = sha1s[i]
        local data, has_others = first_note(known)
        if known and first[sha1] then
            again[#again + 1] = i
        elseif data then
            local id, at = id_in(data), #numbers + 1
            first[sha1] = i
            numbers[at], ids[at], entries[at] = i, id, entry_with(id, payloads[i])
            jobs[i] = {sha1 = sha1, data = data, note = data, id = id, entry = entries[at], has_others = has_others}
        end
    end
    if #numbers == 0 then
        return jobs
    end
    local dues = redis.call('ZMSCORE', KEYS.timeout_set, unpack(entries))
    local fields = redis.call('HMGET', KEYS.jobs, unpack(ids))
    -- Of each payload, the data from which on the next one is looked for; nil if there is none.
    local last = {}
    for at, i in ipairs(numbers) do
        local job, field = jobs[i], fields[at] or nil
        local has_others = job.has_others
        job.is_pending_again = dues[at]
        if is_pending(job, field, dues[at]) then
            has_others = has_others and not is_later_than(now, job.data)
            job, field = nil, nil
            if has_others then
                job, field = later_note(sha1s[i], nil, payloads[i], now)
            end
        end
        last[sha1s[i]] = has_others and job and (job.is_later and job.note or '')
        jobs[i] = job
        if job then
            take_id(job, field)
        end
    end
    -- Equal payloads get the next notes.
    for _, i in ipairs(again) do
        local behind = last[sha1s[i]]
        if behind then
            local job, field = later_note(sha1s[i], behind ~= '' and behind or nil, payloads[i], now)
            last[sha1s[i]] = job and job.note
            jobs[i] = job
            if job then
                take_id(job, field)
            end
        end
    end
    return jobs
end

-- These jobs are claimed or removed: their notes are no longer there. What the server refuses is left to a
-- sweep.
local function remove_notes(jobs)
    local gone = {}
    for _, job in pairs(jobs) do
        if job.is_later then
            redis.pcall('ZREM', KEYS.more_notes, job.sha1 .. job.note)
        elseif not job.has_others then
            gone[#gone + 1] = job.sha1
        end
    end
    -- Behind those that are later: one of the others takes their place.
    for _, job in pairs(jobs) do
        if job.has_others then
            pcall(remove_first_note, job.sha1, true)
        end
    end
    if #gone > 0 then
        redis.pcall('HDEL', KEYS.notes, unpack(gone))
    end
end
