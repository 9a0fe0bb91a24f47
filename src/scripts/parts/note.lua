-- Keeps what travels with a job until a receiver claims its payload. A part of the scripts about jobs, behind
-- parts/field.
-- Provides  HOLDS, DISCARDED, is_data, due_in, id_in, has_flag, without_hold, expires_in, without_expiry,
--           entry_with, check_notes, most_forgotten, first_note, next_notes, add_note, remove_first_note,
--           last_note, remove_note, remove_note_of, move_note
-- The list of ready payloads has nothing but payloads, and anybody may have moved one there. So the data of a
-- job waits in a hash under the SHA-1 of its payload, in hex. Equal payloads become ready in the order of
-- their due times: the hash has the data of the one that is due first, behind '1' if there are others, and
-- '0' otherwise. Those are in a sorted set, whose members all have the score 0: the SHA-1, and the data. The
-- data is: due time (epoch ms, 6 bytes, big-endian), length of the id (1), id, flags (1), time of the offer
-- (6), when it expires (6; 0 if it does not), headers.
-- The flags are: 1, it holds its id; 2, it is discarded if it expires, and otherwise becomes a dead letter.
local HOLDS, DISCARDED = 1, 2
local MOST_SKIPPED = 1000

-- Whether it is long enough to be the data of a job. What another program wrote is the data of none.
local function is_data(data)
    local length = string.byte(data, 7)
    return length and #data >= 20 + length
end

local function due_in(data)
    local high, low = struct.unpack('>I2I4', data)
    return high * 4294967296 + low
end

local function id_in(data)
    return string.sub(data, 8, 7 + string.byte(data, 7))
end

local function flags_in(data)
    return string.byte(data, 8 + string.byte(data, 7))
end

local function has_flag(data, flag)
    return math.floor(flags_in(data) / flag) % 2 == 1
end

-- The same data of a job that does not hold its id.
local function without_hold(data)
    if not has_flag(data, HOLDS) then
        return data
    end
    local at = 8 + string.byte(data, 7)
    return string.sub(data, 1, at - 1) .. string.char(flags_in(data) - HOLDS) .. string.sub(data, at + 1)
end

-- When it expires, epoch ms; 0 if it does not.
local function expires_in(data)
    local high, low = struct.unpack('>I2I4', data, 15 + string.byte(data, 7))
    return high * 4294967296 + low
end

local function without_expiry(data)
    local at = 15 + string.byte(data, 7)
    return string.sub(data, 1, at - 1) .. packed_time(0) .. string.sub(data, at + 6)
end

-- The entry of a job with this payload: see wire/entry.rs.
local function entry_with(id, payload)
    return string.char(#id) .. id .. struct.pack('<I8', #payload) .. payload
end

-- Fails, before the first write, if notes cannot be read or written. Changes nothing.
local function check_notes()
    redis.call('HGET', KEYS.notes, '')
    redis.call('HDEL', KEYS.notes, '')
    redis.call('ZRANGE', KEYS.more_notes, 0, 0)
    redis.call('ZREM', KEYS.more_notes, '')
    redis.call('ZADD', KEYS.more_notes, 'XX', 0, '')
end

-- How many jobs a call forgets at most: a page of what a client has read, and a little more.
local function most_forgotten()
    return redis.pcall('HLEN', KEYS.notes) == 0 and math.huge or 1200
end

-- The data of the first one of equal payloads, or nil if another program wrote it or there is none, and
-- whether there are others.
local function first_note(known)
    local data = known and string.sub(known, 2)
    return data and is_data(data) and data or nil, known and string.byte(known) == 49
end

-- The data of up to `count` notes of this payload that come after this one, or of the first ones if there is
-- none.
local function next_notes(sha1, data, count)
    local from = data and '(' .. sha1 .. data or '[' .. sha1
    local datas, some = {}, count
    repeat
        local found = redis.call('ZRANGE', KEYS.more_notes, from, '(' .. sha1 .. '\255', 'BYLEX', 'LIMIT', 0, some)
        for _, member in ipairs(found) do
            local one = string.sub(member, 41)
            if is_data(one) then
                datas[#datas + 1] = one
            end
        end
        -- Another program wrote all of these.
        local is_over = #datas > 0 or #found < some or some >= MOST_SKIPPED
        from, some = '(' .. (found[#found] or ''), MOST_SKIPPED
    until is_over
    return datas
end

-- Returns an error if a write was refused. Then nothing has changed.
local function add_note(payload, data)
    local sha1 = redis.sha1hex(payload)
    local known = redis.pcall('HGET', KEYS.notes, sha1)
    local first, later = first_note(type(known) == 'string' and known), data
    if not first then
        return redis.pcall('HSET', KEYS.notes, sha1, '0' .. data)
    end
    if due_in(data) < due_in(first) then
        first, later = data, first
    end
    local added = redis.pcall('ZADD', KEYS.more_notes, 0, sha1 .. later)
    if type(added) == 'table' then
        return added
    end
    return redis.pcall('HSET', KEYS.notes, sha1, '1' .. first)
end

-- The first one of equal payloads is claimed or removed: the next one takes its place.
local function remove_first_note(sha1, has_others)
    local data = has_others and next_notes(sha1, nil, 1)[1]
    if data then
        redis.call('HSET', KEYS.notes, sha1, '1' .. data)
        redis.call('ZREM', KEYS.more_notes, sha1 .. data)
    else
        redis.call('HDEL', KEYS.notes, sha1)
    end
end

-- What the data of this job begins with, if it is or was due at this time.
local function begin_of(due, id)
    return packed_time(due) .. string.char(#id) .. id
end

-- The later note of this payload that is of this job, due at this time, and holds its id or does not; the
-- last one that was offered, if there are several; or nil.
local function last_note(sha1, due, id, holds)
    local begin, last, offered = sha1 .. begin_of(due, id), nil, nil
    for _, member in ipairs(redis.call('ZRANGE', KEYS.more_notes, '(' .. begin .. '\255', '[' .. begin, 'BYLEX', 'REV', 'LIMIT', 0, 16)) do
        local data = string.sub(member, 41)
        if is_data(data) and has_flag(data, HOLDS) == holds then
            local at = struct.unpack('>I6', data, 9 + #id)
            if not last or at > offered then
                last, offered = data, at
            end
        end
    end
    return last
end

-- Removes the note of the job with this payload that is or was due at this time, and holds its id or does
-- not: the last one, if it was offered again for the same time before its payload was claimed. Returns its
-- data, or nil.
local function remove_note(payload, due, id, holds)
    local sha1 = redis.sha1hex(payload)
    local first, has_others = first_note(redis.call('HGET', KEYS.notes, sha1))
    if not first then
        return nil
    end
    local last = has_others and last_note(sha1, due, id, holds)
    if last then
        redis.call('ZREM', KEYS.more_notes, sha1 .. last)
        return last
    end
    local begin = begin_of(due, id)
    if string.sub(first, 1, #begin) == begin and has_flag(first, HOLDS) == holds then
        remove_first_note(sha1, has_others)
        return first
    end
end

-- The same for the job of this field, with which something travels.
local function remove_note_of(id, field)
    local entry = entry_of(field)
    return remove_note(string.sub(entry, 10 + string.byte(entry)), due_of(field), id, kind_of(field) == 'h')
end

-- The pending job of this id, with this field, is due at another time: its field and its note say so. This is
-- the first write.
local function move_note(id, field, due)
    local entry, kind = entry_of(field), kind_of(field)
    if kind == 'p' then
        return
    end
    local payload = string.sub(entry, 10 + string.byte(entry))
    check_notes()
    redis.call('HSET', KEYS.jobs, id, field_of(kind, first_of(field), due, entry))
    local data = remove_note(payload, due_of(field), id, kind == 'h')
    if data then
        add_note(payload, packed_time(due) .. string.sub(data, 7))
    end
end
