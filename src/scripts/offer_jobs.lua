-- Offers jobs: entries whose ids are the user's, or entries that are throttled. Only once, however often the call is sent.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 channel   4 receipt of this call
--        5 jobs: id -> first offer, due time, entry   6 scratch   and the throttle of each job, if there are any
-- ARGV   1 what the times count from, epoch ms; or 'now': from the server's clock   2 ms for which the receipt is kept
--        3 what to do if an id is pending: 'keep', 'replace', 'earliest', 'debounce'   4 the longest wait of 'debounce' in ms
--        5 ms in which no other job is accepted   6.. time in ms, id or '', entry, time, ...
-- Reply  {what the times counted from, epoch ms; the head, if its transfer may have to be started, or false;
--        for each job 'stored', 'kept', 'replaced' or 'throttled', and the due time or the end of the throttling, epoch ms}
--        or {false, why the server refused, 1 if nothing is stored or 0 if some of them may be}
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n) for each; if a payload is replaced, also a native scan of the ordered list from its nearer end
-- An entry that is pending under the id of a job, with its payload, is that job, also if its field was deleted
-- by hand.
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local base = tonumber(ARGV[1]) or now
local policy, max_wait = ARGV[3], tonumber(ARGV[4])

-- What becomes of each job. The jobs before it in this call count as stored.
local reply, changes, fields, accepted = {base, false}, {}, {}, {}
local replaces, known_id, known_field = false, nil, nil
for i = 6, #ARGV, 3 do
    local due, id, entry = base + ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local throttle = throttle_of(i / 3 - 1)
    local left = throttle and (accepted[throttle] and tonumber(ARGV[5]) or throttled_for(throttle)) or 0
    local pending, pending_due, first, field
    if id ~= '' then
        local earlier = fields[id]
        if earlier then
            pending, pending_due, first = earlier.entry, earlier.due, earlier.first
            field = field_of(first, pending_due, pending)
        else
            pending, pending_due, first, field = job_of(id)
            if pending then
                known_id, known_field = id, field
            end
        end
    end
    if policy == 'debounce' then
        due = math.max(now, math.min(due, (first or now) + max_wait))
    end
    local outcome, at = 'stored', due
    if left > 0 then
        outcome, at = 'throttled', now + left
    elseif pending then
        outcome = 'replaced'
        if policy == 'keep' or policy == 'earliest' and due >= pending_due then
            outcome, at = 'kept', pending_due
        end
    end
    if outcome == 'stored' or outcome == 'replaced' then
        -- Beyond 10^15, Redisson's decoder and Lua's doubles lose digits.
        if due >= 1e15 then
            return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
        end
        local change = {
            id = id, entry = entry, due = due, first = first or now, old = pending, old_field = field, throttle = throttle,
            place = #reply + 1,
        }
        changes[#changes + 1] = change
        if id ~= '' then
            fields[id] = change
        end
        if throttle then
            accepted[throttle] = true
        end
        if pending and pending ~= entry then
            replaces = true
        end
    end
    reply[#reply + 1] = outcome
    reply[#reply + 1] = at
end

local function remembered(outcome)
    local reply = cmsgpack.unpack(outcome)
    if reply[1] then
        reply[2] = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2] or false
    end
    return reply
end

if #changes == 0 then
    -- The ids may be taken by an earlier try of this call.
    local outcome = redis.call('GET', KEYS.receipt)
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
    ensure_permitted({'LREM', 'ZREM'}, {'RPUSH'})
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
    local undone = 0
    if i == 1 then
        if not changes[1].old then
            -- A field without an entry does no harm.
            redis.pcall('HDEL', KEYS.jobs, changes[1].id)
        end
        undone = (not added or type(redis.pcall('ZREM', KEYS.timeout_set, changes[1].entry)) == 'number') and 1 or 0
    end
    redis.call('SET', KEYS.receipt, cmsgpack.pack({false, error, undone}), 'PX', ARGV[2])
    return {false, error, undone}
end

-- Whether the entry stays as it is, which was pending without a field. Corrects the reply.
local function is_kept(change, due)
    local is_kept = policy == 'keep' or policy == 'earliest' and change.due >= due
    reply[change.place] = is_kept and 'kept' or 'replaced'
    if is_kept then
        reply[change.place + 1] = due
        redis.call('HSET', KEYS.jobs, change.id, field_of(change.first, due, change.entry))
    end
    return is_kept
end

local is_new, is_corrected = {}, false
for i, change in ipairs(changes) do
    local score, is_changed = string.format('%.0f', change.due), true
    -- The field of a job that keeps its entry stays as it is.
    if change.id ~= '' and change.old ~= change.entry then
        local stored = redis.pcall('HSET', KEYS.jobs, change.id, field_of(change.first, change.due, change.entry))
        if type(stored) == 'table' then
            return refuse(i, stored.err)
        end
    end
    local added = 0
    if change.old ~= change.entry then
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
        local due = change.id ~= '' and change.old ~= change.entry and redis.pcall('ZSCORE', KEYS.timeout_set, change.entry)
        if type(due) == 'table' then
            return refuse(i, due.err)
        elseif due then
            is_changed, is_corrected = not is_kept(change, tonumber(due)), true
        end
        local changed = is_changed and redis.pcall('ZADD', KEYS.timeout_set, 'XX', score, change.entry)
        if type(changed) == 'table' then
            return refuse(i, changed.err)
        end
    end
    if change.old and change.old ~= change.entry then
        redis.call('ZREM', KEYS.timeout_set, change.old)
        redis.call('LREM', KEYS.ordered_list, nearer_end(change.old_field), change.old)
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
