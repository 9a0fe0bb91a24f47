-- Removes jobs by their ids, as many as there is time for: pending ones; and those that hold their ids,
-- whatever their state. One that is in flight is removed when its delivery ends.
-- KEYS   1 timeout set   2 ordered list   3 jobs   4 scratch   5 notes   6 target   7 inbox   8 messages
--        9 retries   10 dead   11 dead messages   12 receivers: their channel   13 more notes
-- ARGV   1 µs
--        2 where a pass through the ordered list goes on: an index from its tail; or -1: find each job by
--        itself   3 a text that is no entry   4.. ids
-- Reply  {the next index, or -1 at the end of the list; for each id 1, 0 if there is no such job, 2 if it is
--        in flight, or -1 if the call must be repeated for it}
-- Cost   each by itself: O(log n), and one native scan of the ordered list from its nearer end, or of the
--        target. In a pass: O(log n), and one scan for all that a call finds, which reads up to a thousand
--        entries at a time. It reads no more than 4 MB of jobs, and as much of the list, unless one is longer
local MOST_BYTES = 4194304
local budget = tonumber(ARGV[1])
local reply, ids_of, pending, bytes, has_written, is_refused = {-1}, {}, 0, 0, false, false
redis.call('LLEN', KEYS.ordered_list)
check_notes()
ensure_permitted({'LREM', 'ZREM', 'HDEL'}, {})
if redis.call('ZCARD', KEYS.more_notes) > 0 then
    -- The next one of equal payloads takes the place of the first.
    redis.call('HSET', KEYS.scratch, '', '')
    redis.call('HDEL', KEYS.scratch, '')
end

local from = tonumber(ARGV[2])
local tail = from >= 0 and redis.call('LRANGE', KEYS.ordered_list, -1, -1)[1]
if tail then
    -- What is not pending is cancelled before the pass marks what it finds, so the permission is needed now.
    -- This changes nothing.
    redis.call('LSET', KEYS.ordered_list, -1, tail)
end

local function remove(i, entry, field)
    redis.call('ZREM', KEYS.timeout_set, entry)
    if kind_of(field) ~= 'p' then
        remove_note_of(ARGV[i], field)
    end
    redis.call('HDEL', KEYS.jobs, ARGV[i])
    reply[i - 2], has_written = 1, true
end

local function remove_alone(i, entry, field)
    local count = nearer_end(field)
    remove(i, entry, field)
    redis.call('LREM', KEYS.ordered_list, count, entry)
end

-- A receiver has it, and hears of that; at the latest when it extends the lease. The message is not delivered
-- again.
local function request(id, field, message)
    redis.call('HSET', KEYS.jobs, id, 'c' .. string.sub(field, 2))
    redis.pcall('PUBLISH', KEYS.receivers, 'cancel ' .. message)
    return 2
end

-- Ends a job that is not pending. Reads and checks everything before it writes. Returns what becomes of it,
-- for the reply.
local function cancel(id, field)
    local holder = holder_of(id, field, now / 1000)
    if field and is_newer_field(field) then
        return 0
    elseif holder and holder.state == 'running' then
        return request(id, field, holder.message)
    end
    local stale = not holder and field and is_stale(field, now / 1000)
    if holder then
        check_holder(holder)
        remove_holder_note(holder)
        remove_holder(holder)
    elseif stale then
        remove_note_of(id, field)
    end
    -- By the field of one that may be ready, a sweep finds what travels with it.
    if holder or stale or field and kind_of(field) ~= 'd' then
        redis.call('HDEL', KEYS.jobs, id)
    end
    return holder and 1 or 0
end

for i = 4, #ARGV do
    reply[i - 2] = -1
end
for i = 4, #ARGV do
    if bytes > MOST_BYTES then
        break
    end
    local entry, _, _, field = job_of(ARGV[i])
    bytes = bytes + #(field or '')
    if not is_refused and (i == 4 or spent() < budget or from >= 0 and entry) then
        if not entry and has_written then
            -- If the server refuses it, the reply says what was done before. The next call begins with it,
            -- and fails.
            local is_done, outcome = pcall(cancel, ARGV[i], field)
            reply[i - 2], is_refused = is_done and outcome or -1, not is_done
        elseif not entry then
            reply[i - 2] = cancel(ARGV[i], field)
            has_written = reply[i - 2] > 0
        elseif from < 0 then
            remove_alone(i, entry, field)
        else
            ids_of[entry] = {i, field}
            pending = pending + 1
        end
    end
end
if from >= 0 and bytes > MOST_BYTES then
    -- A pass would go on without those that were not read.
    reply[1] = from
    local till = spent() + budget
    for entry, known in pairs(ids_of) do
        remove_alone(known[1], entry, known[2])
        if spent() >= till then
            break
        end
    end
    return reply
elseif from < 0 or pending == 0 then
    return reply
end

local SLICE, marked = 1000, 0
local looked_at, count, longest = 0, 4, 1
-- To find the entries of a thousand ids takes as long again, in each call.
local till = spent() + budget
local is_far = 2 * from > redis.call('LLEN', KEYS.ordered_list)
repeat
    count = math.min(count, SLICE, math.max(1, math.floor((MOST_BYTES - looked_at) / longest)))
    local entries = redis.call('LRANGE', KEYS.ordered_list, -from - count, -from - 1)
    for i = #entries, 1, -1 do
        looked_at, longest = looked_at + #entries[i], math.max(longest, #entries[i])
        local known = ids_of[entries[i]]
        if known then
            ids_of[entries[i]] = nil
            redis.call('LSET', KEYS.ordered_list, i - 1 - #entries - from, ARGV[3])
            remove(known[1], entries[i], known[2])
            marked, pending = marked + 1, pending - 1
        end
    end
    from = from + #entries
    local is_end = #entries < count
    count = 8 * count
until is_end or pending == 0 or looked_at >= MOST_BYTES or spent() >= till
if marked > 0 then
    -- From the end that is nearer.
    redis.call('LREM', KEYS.ordered_list, is_far and marked or -marked, ARGV[3])
end
-- What was removed lies no longer between the tail and the next entry.
reply[1] = pending > 0 and from < redis.call('LLEN', KEYS.ordered_list) + marked and from - marked or -1
return reply
