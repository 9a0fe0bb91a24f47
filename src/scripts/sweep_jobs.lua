-- Removes the ids of jobs that are no longer pending, nor anything that holds its id, and what travelled with
-- them. Clients that moved or removed the entries have left them, or those who took the payloads.
-- KEYS   1 timeout set   2 jobs   3 control: where the next call goes on, and when   4 dead letters
--        5 dead messages: their content   6 notes   7 target   8 inbox   9 messages   10 more notes
--        11 scratch
-- ARGV   1 fields to look at, about
-- Reply  {how many were removed, ms until the next call, or -1 if all have been looked at, 1 if the dead
--        letters and their content do not agree, or 0}
-- Clock  the server's (TIME)
-- Cost   O(1) for each field; no more than about 1 MB of them, or what is read in 10 ms, and then one note;
--        and for the notes the same again; native scans of parts of the target for up to 10 ms. The calls of
--        all clients take about one hundredth of the server's time
-- Redisson moves entries that are due, and seldom removes others. To look for an entry costs more than to
-- read its field, so a pass looks for those that are due; and for all if there are few, or most ids are
-- stale.
local REST = 30000 -- ms between two passes
local FEW = 10000
local MOST = 500 -- entries that are looked for in one command
local SCANNED = 10000 -- elements at each end of the target among which a payload is looked for
local SCAN_TIME = 5000 -- µs for that
local READ_TIME = 10000 -- µs after which no more fields and notes are read
local NOTES = 500 -- notes that one call looks at, about
local LOOKED_AT = '-' -- the cursor of the jobs, as long as notes are left
local OLD = 604800000 -- ms: no payload whose job does not hold its id has its data for longer
local EQUAL = 1000 -- equal payloads that are counted
local BYTES = 1000000 -- of entries that are looked for in one command, or that a call reads for its notes

local now_ms = math.floor(now / 1000)
local cursor, next_call, foreign, notes_at = unpack(redis.call('HMGET', KEYS.control, 'jobs', 'jobs-at', 'foreign', 'notes-at'))
-- Receivers look for that, too, but there may be none. A key of another type is for them to report.
local apart = are_apart(foreign) and 1 or 0
local count, notes = redis.call('HLEN', KEYS.jobs), redis.call('HLEN', KEYS.notes)
redis.call('HDEL', KEYS.control, '') -- changes nothing, but a script that has written may go on with a full memory
if notes > 0 then
    redis.call('HSET', KEYS.control, 'notes', '1')
else
    redis.call('HDEL', KEYS.control, 'notes', 'notes-at')
    -- The hash was deleted by hand.
    redis.call('ZREMRANGEBYRANK', KEYS.more_notes, 0, NOTES)
end
if count + notes == 0 then
    redis.call('HDEL', KEYS.control, 'jobs', 'jobs-at')
    return {0, -1, apart}
end
local wait = (tonumber(next_call) or 0) - now_ms
if wait > 0 and wait <= REST then
    return {0, wait > REST / 2 and -1 or wait, apart}
end

-- The server refuses a longer number.
local function is_cursor(text)
    return text and #text < 20 and string.find(text, '^%d+$')
end

local length, waiting = redis.call('LLEN', KEYS.target), redis.call('LLEN', KEYS.inbox)
local scan_till = nil

-- The cursor of a scan, and how many of the fields from there on an earlier call has checked.
local function place(text)
    local from, passed = string.match(text or '', '^(%d+):?(%d*)$')
    return is_cursor(from) and from or '0', tonumber(passed) or 0
end

-- If so, the next call continues here. If it skipped what was read and not checked, each pass would check the
-- same first fields.
local function has_scanned_long()
    return scan_till and spent() > scan_till
end

-- Whether a payload is in the target or the inbox, or may be.
local function may_be_ready(payload)
    if length + waiting == 0 then
        return false
    elseif length > 2 * SCANNED then
        return true
    end
    scan_till = scan_till or spent() + SCAN_TIME
    return redis.call('LPOS', KEYS.inbox, payload, 'MAXLEN', SCANNED)
        or redis.call('LPOS', KEYS.target, payload, 'MAXLEN', SCANNED)
        or redis.call('LPOS', KEYS.target, payload, 'RANK', -1, 'MAXLEN', SCANNED)
end

-- How many payloads are in the target or the inbox that are equal to this one; nil if there may be more than
-- are counted.
local function ready_count(payload)
    if length + waiting > 2 * SCANNED then
        return nil
    end
    scan_till = scan_till or spent() + SCAN_TIME
    local ready = #redis.call('LPOS', KEYS.inbox, payload, 'COUNT', 0) + #redis.call('LPOS', KEYS.target, payload, 'COUNT', 0)
    return ready <= EQUAL and ready or nil
end

local function read(from, number)
    return redis.call('HSCAN', KEYS.jobs, from, 'COUNT', number)
end
local function is_late()
    return spent() > READ_TIME
end
local fields, next = {}, '0'
local from, passed = place(cursor)
if cursor ~= LOOKED_AT then
    fields, next = scan(read, from, tonumber(ARGV[1]), is_late)
end
local found, entries, removed = {}, {}, 0

-- Returns the number of the field at which the scans took too long, or nil.
local function look_for_entries()
    local scores, stale, left = redis.call('ZMSCORE', KEYS.timeout_set, unpack(entries)), {}, nil
    for n, job in ipairs(found) do
        local id, field, at = unpack(job)
        local payload = not scores[n] and kind_of(field) ~= 'p' and payload_of(entries[n])
        -- An entry that was not due has been removed, and an equal payload is another one.
        local is_gone = due_of(field) > now_ms + AHEAD or kind_of(field) == 'd' and due_of(field) < now_ms - OLD
        if not scores[n] and not is_gone and payload and has_scanned_long() then
            left = at
            break
        elseif not scores[n] and (is_gone or not (payload and may_be_ready(payload))) then
            stale[#stale + 1] = id
            if payload then
                remove_note_of(id, field)
            end
        end
    end
    if #stale > 0 then
        removed = removed + redis.call('HDEL', KEYS.jobs, unpack(stale))
    end
    found, entries = {}, {}
    return left
end

local looks_for_all = count <= FEW or redis.call('ZCARD', KEYS.timeout_set) < count / 2
for n = passed + 1, #fields / 2 do
    local id, field = fields[2 * n - 1], fields[2 * n]
    if is_of_message(field) then
        local message = message_of(field)
        if redis.call('HEXISTS', KEYS.messages, message) + redis.call('HEXISTS', KEYS.dead_messages, message) == 0 then
            removed = removed + redis.call('HDEL', KEYS.jobs, id)
        end
    elseif is_newer_field(field) then
        -- A program that knows it sweeps it.
    elseif not has_entry(field) then
        removed = removed + redis.call('HDEL', KEYS.jobs, id)
    elseif looks_for_all or due_of(field) <= now_ms then
        found[#found + 1], entries[#entries + 1] = {id, field, n}, entry_of(field)
    end
    local left = (#found == MOST or #found > 0 and 2 * n == #fields) and look_for_entries()
    if left then
        next = string.format('%s:%d', from, math.max(0, left - 1 - removed))
        break
    end
end

-- Notes of payloads that somebody has taken without them.
local notes_next = '0'

local bytes = 0
local function has_read_much()
    return bytes > BYTES or is_late()
end

-- The field that belongs to the note with this data, or nil.
local function field_with(sha1, data)
    local field = redis.call('HGET', KEYS.jobs, id_in(data))
    bytes = bytes + (field and #field or 0)
    local is_its = field and has_entry(field) and kind_of(field) ~= 'p' and due_of(field) == due_in(data)
        and redis.sha1hex(payload_of(entry_of(field)) or '') == sha1
    return is_its and field or nil
end

local function is_stale(data, field)
    local is_old = length + waiting == 0 or due_in(data) > now_ms or due_in(data) < now_ms - OLD
    return not field and (has_flag(data, HOLDS) or is_old)
end

-- How many of the first notes of this payload belong to payloads that are gone. Each note of a job that was
-- due, and is not pending, belongs to an equal payload that is ready. If there are more such notes than
-- payloads, the first ones are too many: equal payloads are usually taken in the order of their due times.
local function surplus(sha1, first, payload)
    local ready = ready_count(payload)
    if not ready then
        return 0
    end
    local datas = next_notes(sha1, nil, ready + NOTES)
    table.insert(datas, 1, first)
    local some = math.max(1, math.floor(BYTES / (#payload + 1)))
    local was_due, is_pending = 0, false
    while was_due < #datas and not is_pending and (was_due == 0 or not is_late()) do
        local entries = {}
        for n = was_due + 1, math.min(was_due + some, #datas) do
            entries[#entries + 1] = entry_with(id_in(datas[n]), payload)
        end
        for _, due in ipairs(redis.call('ZMSCORE', KEYS.timeout_set, unpack(entries))) do
            is_pending = due or due_in(datas[was_due + 1]) > now_ms
            if is_pending then
                break
            end
            was_due = was_due + 1
        end
    end
    return math.max(0, was_due - ready)
end

-- Removes the first notes of this payload that are of none, and the ids that were theirs.
local function sweep_notes(sha1, known)
    local gone = nil
    for _ = 1, NOTES do
        local data, has_others = first_note(known)
        if not data then
            remove_first_note(sha1, has_others)
            return
        end
        local field = field_with(sha1, data)
        if not is_stale(data, field) then
            if not gone then
                gone = field and has_others and surplus(sha1, data, payload_of(entry_of(field))) or 0
            end
            if gone == 0 then
                return
            end
            removed = removed + (field and redis.call('HDEL', KEYS.jobs, id_in(data)) or 0)
        end
        gone = gone and math.max(0, gone - 1)
        remove_first_note(sha1, has_others)
        known = redis.call('HGET', KEYS.notes, sha1)
        if not known or has_read_much() then
            return
        end
    end
end

if notes > 0 then
    local function read_notes(from, number)
        return redis.call('HSCAN', KEYS.notes, from, 'COUNT', number)
    end
    from, passed = place(notes_at)
    local some
    some, notes_next = scan(read_notes, from, NOTES, is_late)
    scan_till = nil
    local left = redis.call('HLEN', KEYS.notes)
    for n = 2 * passed + 1, #some, 2 do
        if n > 2 * passed + 1 and (has_read_much() or has_scanned_long()) then
            notes_next = string.format('%s:%d', from, (n - 1) / 2 - left + redis.call('HLEN', KEYS.notes))
            break
        end
        sweep_notes(some[n], some[n + 1])
    end
    redis.call('HSET', KEYS.control, 'notes-at', notes_next)
end
local is_over = next == '0' and notes_next == '0'
if next == '0' and not is_over then
    next = LOOKED_AT
end
-- A hundred times as long as this call took.
wait = is_over and REST or math.ceil(math.max(spent() / 10, 100))
redis.call('HSET', KEYS.control, 'jobs', next, 'jobs-at', string.format('%.0f', now_ms + wait))
return {removed, is_over and -1 or wait, apart}
