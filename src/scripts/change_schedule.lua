-- Changes a schedule if its record is still the one that the caller has read. So of all clients that try the
-- same change, one succeeds.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 channel
--        4 jobs: id -> first offer, due time, entry   5 scratch
--        6 schedules: name -> next run, epoch ms; +inf if there is none
--        7 records of schedules: name -> record   8 notes   9 more notes: for runs that hold their ids
--        10 control   11 target   12 inbox
-- ARGV   1 name   2 the record that was read, or ''   3 the next run that was read, or ''
--        4 the new record, or '' to delete the schedule   5 the next run, epoch ms, or 'inf'
--        6 the entry of a run that is withdrawn, or ''   7 its id
--        8 the id of the last run, if runs hold their ids until they are done, or ''
--        9.. runs: due, epoch ms, id, entry, due, ...
-- Reply  {1; 0 if the record is another one; -1 if the withdrawn entry is not pending any more; the head, if
--        its transfer may have to be started, or false}
-- Clock  the server's (TIME), rounded up
-- Cost   O(log n) for each run; for one that is withdrawn, a native scan of the ordered list from its tail;
--        for one that somebody has taken, of the target
local name, record, withdrawn, hold = ARGV[1], ARGV[4], ARGV[6], ARGV[8] ~= '' and ARGV[9]
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)

-- The field of a run whose payload somebody has taken without what travelled with it; or nil. An equal
-- payload would be taken for it.
local function field_of_taken(id)
    local entry, _, _, field = job_of(id)
    if entry or not field or not has_entry(field) or kind_of(field) ~= 'h' then
        return nil
    end
    local payload = payload_of(entry_of(field))
    local is_ready = redis.call('LPOS', KEYS.target, payload) or redis.call('LPOS', KEYS.inbox, payload)
    return not is_ready and field or nil
end

-- A schedule that was removed and stored again has the same record, but not the same next run.
if (redis.call('HGET', KEYS.records, name) or '') ~= ARGV[2] or (redis.call('ZSCORE', KEYS.schedules, name) or '') ~= ARGV[3] then
    return {0, false}
end
if ARGV[2] == '' and ARGV[9] and tonumber(ARGV[9]) <= now then
    -- The first run of a new schedule lies ahead. This call was late, and there may have been such a schedule
    -- since.
    return {0, false}
end
if not redis.call('ZSCORE', KEYS.timeout_set, withdrawn) and withdrawn ~= '' then
    -- It was moved since the schedule was read: the run would come twice.
    return {-1, false}
end
-- There must be room for one run: then those that were missed are stored, too. The place of a run that is
-- withdrawn, or that is due and was not moved yet, is free.
local most = ARGV[9] and withdrawn == '' and most_pending() or 0
local full = most > 0 and is_full(most, job_of(name .. '@' .. ARGV[3]) and 0 or 1)
if full then
    return redis.error_reply('REDELAY ' .. full)
end
redis.call('LLEN', KEYS.ordered_list)
redis.call('HLEN', KEYS.jobs)
if record ~= '' then
    -- Changes nothing, but fails if the memory is full: after the next command, nothing would.
    redis.call('SET', KEYS.scratch, '', 'XX')
end
local field = withdrawn ~= '' and redis.call('HGET', KEYS.jobs, ARGV[7])
field = field and has_entry(field) and entry_of(field) == withdrawn and field
if hold or field and kind_of(field) ~= 'p' then
    check_notes()
    redis.call('HDEL', KEYS.control, '')
end
local taken = hold and field_of_taken(ARGV[8])
ensure_permitted({'LREM', 'ZREM', 'HDEL'}, {'RPUSH'})
redis.call('ZADD', KEYS.timeout_set, 'XX', 0, '') -- changes nothing, but fails without the permission
if record == '' then
    redis.call('HDEL', KEYS.records, name)
    redis.call('ZREM', KEYS.schedules, name)
else
    redis.call('HSET', KEYS.records, name, record)
    redis.call('ZADD', KEYS.schedules, ARGV[5], name)
end

if withdrawn ~= '' then
    redis.call('ZREM', KEYS.timeout_set, withdrawn)
    redis.call('LREM', KEYS.ordered_list, -1, withdrawn)
    if field then
        redis.call('HDEL', KEYS.jobs, ARGV[7])
        if kind_of(field) ~= 'p' then
            remove_note_of(ARGV[7], field)
        end
    end
end
if taken then
    remove_note_of(ARGV[8], taken)
    redis.call('HDEL', KEYS.jobs, ARGV[8])
end
local is_new = {}
for i = 9, #ARGV, 3 do
    local due, id, entry = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    if redis.call('ZADD', KEYS.timeout_set, 'NX', due, entry) == 1 then
        redis.call('RPUSH', KEYS.ordered_list, entry)
        -- The id may be that of a job which is pending. It keeps it.
        if not job_of(id) then
            redis.call('HSET', KEYS.jobs, id, field_of(hold and 'h' or 'p', now, due, entry))
            if hold then
                add_note(payload_of(entry), data_of(tonumber(due), id, HOLDS, now, 0, ''))
                announce_notes()
            end
        end
        is_new[entry] = due
    end
end
-- The schedule is changed. A refusal of what follows changes nothing in that.
local head = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')
if head.err or not head[1] then
    return {1, ARGV[9] or false}
elseif is_new[head[1]] then
    redis.pcall('PUBLISH', KEYS.channel, head[2])
    return {1, head[2]}
end
return {1, tonumber(head[2]) <= now and head[2]}
