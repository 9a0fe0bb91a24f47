-- Offers jobs: entries whose ids are the user's, or entries that are throttled. Only once, however often the
-- call is sent.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 channel   4 receipt of this call
--        5 jobs: id -> first offer, due time, entry   6 scratch   7 control
--        with parts/holder.lua:   8 target   9 inbox   10 messages   11 retries   12 dead letters
--                                 13 dead messages
--        14 notes: what travels with jobs   15 more notes   16 rebuild: see parts/list_again.lua
--        without parts/holder.lua:   8 notes   9 rebuild
--        and the throttle of each job, if there are any
-- ARGV   1 what the times count from, epoch ms; or 'now': from the server's clock
--        2 ms for which the receipt is kept
--        3 what to do if an id is pending: 'keep', 'replace', 'earliest', 'debounce'
--        4 the longest wait of 'debounce' in ms   5 ms in which no other job is accepted
--        6 1 to look whether the number of pending entries is limited, or 0
--        7.. time in ms, id or '', entry, data or '', time, ...
--        The data: flags of parts/note.lua (1 byte), what the expiry counts from ('0': an epoch, 'n'ow, or
--        '-' if there is none), expiry in ms (6, big-endian), headers
-- Reply  {what the times counted from, epoch ms; the head, if its transfer may have to be started, or false;
--        1 if there is a limit, 0 if there is none, or false if the call has not looked; for each job, or the
--        first ones, 'stored', 'kept', 'replaced', 'running', 'throttled' or 'full', and the due time, the
--        time of the next try, the end of the throttling, epoch ms, or the limit}
--        or {false, why the server refused, 1 if nothing is stored or 0 if some of them may be}
--        or {false}: nothing is stored, and the script with parts/holder.lua is needed
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n) for each; if a payload is replaced, also a native scan of the ordered list from its nearer
--        end; if the id is held and was due, one of the target, until a million elements are looked at in all
-- An entry that is pending under the id of a job, with its payload, is that job, also if its field was
-- deleted by hand.
local max_wait = tonumber(ARGV[4])

local function remembered(outcome)
    local reply = cmsgpack.unpack(outcome)
    if reply[1] then
        reply[2] = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2] or false
    end
    return reply
end

-- What becomes of each job. The jobs before it in this call count as stored.
local most = ARGV[6] == '1' and most_pending() or nil
local room = most and most > 0 and most - redis.call('ZCARD', KEYS.timeout_set) or math.huge
local reply, changes, fields, accepted = {base, false, most and math.min(most, 1) or false}, {}, {}, {}
local replaces, has_data, known_id, known_field = false, false, nil, nil
for i = 7, #ARGV, 4 do
    if has_scanned_much() then
        break
    end
    local due, id, entry, data = base + ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    -- Without a window, there are no keys for it.
    local throttle = ARGV[5] ~= '0' and throttle_of((i - 3) / 4, (#ARGV - 6) / 4)
    local left = throttle and (accepted[throttle] and tonumber(ARGV[5]) or throttled_for(throttle)) or 0
    local pending, pending_due, first, field, holder
    if id ~= '' then
        local earlier = fields[id]
        if earlier then
            pending, pending_due, first = earlier.entry, earlier.due, earlier.first
            field = field_of(earlier.kind, first, pending_due, pending)
        else
            pending, pending_due, first, field = job_of(id)
            if field and is_newer_field(field) then
                return redis.error_reply('REDELAY a job with this id was stored by a newer version of redelay')
            end
            if field and kind_of(field) ~= 'p' and not KNOWS_HOLDERS then
                local outcome = redis.call('GET', KEYS.receipt)
                return outcome and remembered(outcome) or {false}
            elseif pending then
                known_id, known_field = id, field
            elseif KNOWS_HOLDERS then
                holder = holder_of(id, field, now)
                if holder then
                    -- With 'debounce', what is not pending any more is another burst.
                    first, known_id, known_field = policy ~= 'debounce' and holder.first or nil, id, field
                end
            end
        end
    end
    if policy == 'debounce' then
        due = math.max(now, math.min(due, (pending and first or now) + max_wait))
    end
    local outcome, at = 'stored', due
    if left > 0 then
        outcome, at = 'throttled', now + left
    elseif pending then
        outcome = 'replaced'
        if policy == 'keep' or policy == 'earliest' and due >= pending_due then
            outcome, at = 'kept', pending_due
        end
    elseif holder then
        outcome = 'replaced'
        if kind_of(field) == 'c' then
            -- It is cancelled, and so is kept for nobody.
            outcome, at = 'running', 0
        elseif policy == 'keep' or policy == 'earliest' and (holder.state ~= 'waiting' or due >= holder.at) then
            outcome, at = 'kept', holder.at
        elseif holder.state == 'running' then
            outcome, at = 'running', 0
        end
    end
    if (outcome == 'stored' or outcome == 'replaced') and not pending then
        room = room - 1
        if room < 0 then
            -- Those before it are stored.
            reply[#reply + 1] = 'full'
            reply[#reply + 1] = most
            break
        end
    end
    local expires = 0
    if data ~= '' then
        local from, high, low = struct.unpack('>c1I2I4', data, 2)
        expires = high * 4294967296 + low + (from == 'n' and (base > 0 and base or now) or 0)
    end
    if outcome == 'stored' or outcome == 'replaced' then
        if 0 < expires and expires <= due then
            return redis.error_reply('REDELAY the job would expire when it is due, or before')
        end
        -- Beyond 10^15, Redisson's decoder and Lua's doubles lose digits.
        if due >= 1e15 then
            return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
        end
        local change = {
            id = id, entry = entry, due = due, first = first or now, old = pending, was_due = pending_due, old_field = pending and field, holder = holder,
            -- Somebody has taken its payload without what travels with it.
            stale = not pending and not holder and field and is_stale(field, now) and field,
            throttle = throttle, place = #reply + 1, data = data ~= '' and data, expires = expires, kind = 'p',
        }
        if change.data then
            change.kind = string.byte(data) % 2 == 1 and 'h' or 'd'
            has_data = true
        end
        changes[#changes + 1] = change
        if id ~= '' then
            fields[id] = change
        end
        if throttle then
            accepted[throttle] = true
        end
        if pending and (pending ~= entry or kind_of(field) ~= 'p') or holder or change.stale then
            replaces = true
        end
    end
    reply[#reply + 1] = outcome
    reply[#reply + 1] = at
end

if #changes == 0 then
    -- The ids may be taken, or the room, by an earlier try of this call.
    local outcome = redis.call('GET', KEYS.receipt)
    if not outcome and room < 0 then
        redis.call('SET', KEYS.receipt, cmsgpack.pack(reply), 'PX', ARGV[2])
    end
    return outcome and remembered(outcome) or reply
end
if replaces or #changes > 1 then
    local outcome = redis.call('GET', KEYS.receipt)
    if outcome then
        return remembered(outcome)
    end
    redis.call('LLEN', KEYS.ordered_list)
    -- Changes nothing, but fails if the memory is full: after the next command, nothing would.
    redis.call('SET', KEYS.receipt, '', 'XX')
    if KNOWS_HOLDERS then
        check_notes()
    end
    ensure_permitted({'LREM', 'ZREM', 'HDEL'}, {'RPUSH'})
    for _, change in ipairs(changes) do
        if change.holder then
            check_holder(change.holder)
        end
    end
    redis.call('ZADD', KEYS.timeout_set, 'XX', 0, '') -- changes nothing, but fails without the permission
    if known_id then
        redis.call('HSET', KEYS.jobs, known_id, known_field) -- the same
    end
end
-- The first write. It fails if the memory is full.
if not redis.call('SET', KEYS.receipt, cmsgpack.pack(reply), 'NX', 'PX', ARGV[2]) then
    return remembered(redis.call('GET', KEYS.receipt))
end

-- A write was refused: the first one of its kind, so no other job is stored if it is of the first job.
local function refuse(i, error, added)
    local undone, change = 0, changes[i]
    if not change.old and not change.holder and (i == 1 or not added) then
        -- A field without an entry does no harm.
        redis.pcall('HDEL', KEYS.jobs, change.id)
        if change.data then
            pcall(remove_note, payload_of(change.entry), change.due, change.id, change.kind == 'h')
        end
    end
    if i == 1 then
        undone = (not added or type(redis.pcall('ZREM', KEYS.timeout_set, change.entry)) == 'number') and 1 or 0
    end
    redis.call('SET', KEYS.receipt, cmsgpack.pack({false, error, undone}), 'PX', ARGV[2])
    return {false, error, undone}
end

-- What travels with the job waits for its payload to be claimed. What travelled with the one that it replaces
-- does so no longer. Returns the server's error, or nil.
local function note(change)
    if change.old and kind_of(change.old_field) ~= 'p' then
        remove_note_of(change.id, change.old_field)
    end
    if change.holder then
        remove_holder_note(change.holder)
    elseif change.stale then
        remove_note_of(change.id, change.stale)
    end
    if not change.data then
        return nil
    end
    local data = data_of(change.due, change.id, string.byte(change.data), now, change.expires, string.sub(change.data, 9))
    local noted = add_note(payload_of(change.entry), data)
    return type(noted) == 'table' and noted or nil
end

-- Whether the entry stays as it is, which was pending without a field. Corrects the reply.
local function is_kept(change, due)
    local is_kept = policy == 'keep' or policy == 'earliest' and change.due >= due
    reply[change.place] = is_kept and 'kept' or 'replaced'
    if is_kept then
        reply[change.place + 1] = due
        if change.data then
            remove_note(payload_of(change.entry), change.due, change.id, change.kind == 'h')
            change.due = due
            note({entry = change.entry, due = due, id = change.id, data = change.data, expires = change.expires})
        end
        redis.call('HSET', KEYS.jobs, change.id, field_of(change.kind, change.first, due, change.entry))
    end
    return is_kept
end

local is_new, is_corrected = {}, false
for i, change in ipairs(changes) do
    local score, is_changed = string.format('%.0f', change.due), true
    local refused = note(change)
    if refused then
        return refuse(i, refused.err)
    end
    local is_other = change.old ~= change.entry
    -- The field of a job that keeps its entry stays as it is, unless it has data.
    if change.id ~= '' and (is_other or change.data or kind_of(change.old_field) ~= 'p') then
        local field = field_of(change.kind, change.first, change.due, change.entry)
        local stored = redis.pcall('HSET', KEYS.jobs, change.id, field)
        if type(stored) == 'table' then
            return refuse(i, stored.err)
        end
    end
    local added = 0
    if is_other then
        added = redis.pcall('ZADD', KEYS.timeout_set, 'NX', score, change.entry)
        if type(added) == 'table' then
            return refuse(i, added.err)
        end
    end
    if added == 1 then
        local length = redis.pcall('RPUSH', KEYS.ordered_list, change.entry)
        if type(length) == 'table' then
            return refuse(i, length.err, true)
        end
    else
        -- It is the pending entry, or one whose field was deleted by hand.
        local due = change.id ~= '' and is_other and redis.pcall('ZSCORE', KEYS.timeout_set, change.entry)
        if type(due) == 'table' then
            return refuse(i, due.err)
        elseif due then
            is_changed, is_corrected = not is_kept(change, tonumber(due)), true
        end
        local changed = is_changed and redis.pcall('ZADD', KEYS.timeout_set, 'XX', score, change.entry)
        if type(changed) == 'table' then
            return refuse(i, changed.err)
        end
        if changed and change.old and not is_other then
            list_again(change.entry, change.was_due, now)
        end
    end
    if change.old and is_other then
        redis.call('ZREM', KEYS.timeout_set, change.old)
        redis.call('LREM', KEYS.ordered_list, nearer_end(change.old_field), change.old)
    end
    if change.holder then
        remove_holder(change.holder)
    end
    if is_changed then
        if change.throttle then
            start_throttle(change.throttle, ARGV[5])
        end
        is_new[change.entry] = score
    end
end
if is_corrected then
    redis.call('SET', KEYS.receipt, cmsgpack.pack(reply), 'PX', ARGV[2])
end
-- The jobs are stored. A refusal of what follows changes nothing in that.
if has_data then
    announce_notes()
end
local head = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')
if head.err then
    reply[2] = string.format('%.0f', changes[1].due)
elseif is_new[head[1]] then
    -- Redisson sets its timer to whatever is announced, later times too, so only a head is announced.
    reply[2] = is_new[head[1]]
    redis.pcall('PUBLISH', KEYS.channel, reply[2])
elseif tonumber(head[2]) <= now then
    -- An announcement was lost, or never made.
    reply[2] = head[2]
end
return reply
