-- The beginning of `offer_jobs`, which makes the usual call: it offers one job, of which nothing is stored,
-- and whose payload no other job with data has. To create the functions for everything else would take longer
-- than such a call.
-- Provides  now, base, policy
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local base, policy = tonumber(ARGV[1]) or now, ARGV[3]

-- Makes a usual call, and returns its reply; nil if it is not one.
local function call_as_usual()
    local due, id, entry, data = base + ARGV[7], ARGV[8], ARGV[9], ARGV[10]
    local most, expires, kind, sha1, note = ARGV[6] == '1' and most_pending() or nil, 0, 'p', nil, nil
    if due >= 1e15 or most and most > 0 or redis.call('HGET', KEYS.jobs, id) then
        return nil
    end
    if data ~= '' then
        local from, high, low = struct.unpack('>c1I2I4', data, 2)
        expires = high * 4294967296 + low + (from == 'n' and (base > 0 and base or now) or 0)
        kind, sha1 = string.byte(data) % 2 == 1 and 'h' or 'd', redis.sha1hex(string.sub(entry, 10 + #id))
        note = '0' .. data_of(due, id, string.byte(data), now, expires, string.sub(data, 9))
        if 0 < expires and expires <= due or redis.pcall('HGET', KEYS.notes, sha1) then
            return nil
        end
    end
    -- It may be pending without a field, which was deleted by hand.
    if redis.pcall('ZSCORE', KEYS.timeout_set, entry) then
        return nil
    end
    local reply = {base, false, most or false, 'stored', due}
    -- The first write. It fails if the memory is full.
    if not redis.call('SET', KEYS.receipt, cmsgpack.pack(reply), 'NX', 'PX', ARGV[2]) then
        return nil
    end
    local score, added, refused = string.format('%.0f', due), false, nil
    local function is_done(outcome)
        refused = type(outcome) == 'table' and outcome.err
        return not refused
    end
    if (not note or is_done(redis.pcall('HSET', KEYS.notes, sha1, note)))
        and is_done(redis.pcall('HSET', KEYS.jobs, id, field_of(kind, now, due, entry))) then
        added = is_done(redis.pcall('ZADD', KEYS.timeout_set, 'NX', score, entry))
    end
    if not (added and is_done(redis.pcall('RPUSH', KEYS.ordered_list, entry))) then
        -- What is stored is taken back. A field without an entry does no harm, and neither does a note.
        redis.pcall('HDEL', KEYS.jobs, id)
        if note then
            redis.pcall('HDEL', KEYS.notes, sha1)
        end
        local undone = (not added or type(redis.pcall('ZREM', KEYS.timeout_set, entry)) == 'number') and 1 or 0
        redis.call('SET', KEYS.receipt, cmsgpack.pack({false, refused, undone}), 'PX', ARGV[2])
        return {false, refused, undone}
    end
    if note then
        -- Lets receivers look for it. Without the permission, a sweep does it.
        redis.pcall('HSET', KEYS.control, 'notes', '1')
    end
    local head = redis.pcall('ZRANGE', KEYS.timeout_set, '0', '0', 'WITHSCORES')
    if head.err or head[1] == entry then
        reply[2] = score
    elseif tonumber(head[2]) <= now then
        -- An announcement was lost, or never made.
        reply[2] = head[2]
    end
    if head[1] == entry then
        -- Redisson sets its timer to whatever is announced, later times too, so only a head is announced.
        redis.pcall('PUBLISH', KEYS.channel, score)
    end
    return reply
end

if #ARGV == 10 and ARGV[5] == '0' and ARGV[8] ~= '' and policy ~= 'debounce' then
    local reply = call_as_usual()
    if reply then
        return reply
    end
end
