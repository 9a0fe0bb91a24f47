-- Keeps what travels with a job until a receiver claims its payload. A part of the scripts about jobs, behind parts/field.
-- Provides  HOLDS, CANCELLED, KEPT, data_of, due_in, id_in, has_flag, with_flag, entry_with, check_notes, add_note,
--           remove_note, move_note
-- The list of ready payloads has nothing but payloads, and anybody may have moved one there. So the data of a job waits under the
-- SHA-1 of its payload, in a sorted set whose members all have the score 0: the SHA-1 in 40 hex digits, and the data, which begins
-- with the due time. So the notes of equal payloads are in the order in which these become ready. The data is: due time (epoch ms,
-- 6 bytes, big-endian), length of the id (1), id, flags (1), time of the offer (6), when it expires (6; 0 if it does not), headers.
-- The flags are: 1, it holds its id; 2, its cancellation was requested; 4, it becomes a dead letter if it expires.
local HOLDS, CANCELLED, KEPT = 1, 2, 4

local function data_of(due, id, flags, offered, expires, headers)
    return packed_time(due) .. string.char(#id) .. id .. string.char(flags)
        .. packed_time(offered) .. packed_time(expires) .. headers
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

-- The same data with a flag, or without it.
local function with_flag(data, flag, is_set)
    if has_flag(data, flag) == is_set then
        return data
    end
    local at = 8 + string.byte(data, 7)
    local flags = flags_in(data) + (is_set and flag or -flag)
    return string.sub(data, 1, at - 1) .. string.char(flags) .. string.sub(data, at + 1)
end

-- The entry of a job with this payload: see wire/entry.rs.
local function entry_with(id, payload)
    return string.char(#id) .. id .. struct.pack('<I8', #payload) .. payload
end

-- Fails, before the first write, if notes cannot be read or written. Changes nothing.
local function check_notes()
    redis.call('ZRANGE', KEYS.notes, 0, 0)
    redis.call('ZREM', KEYS.notes, '')
    redis.call('ZADD', KEYS.notes, 'XX', 0, '')
end

local function add_note(payload, data)
    return redis.pcall('ZADD', KEYS.notes, 0, redis.sha1hex(payload) .. data)
end

-- Removes the note of the job with this payload that is or was due at this time. Returns its data, or nil.
local function remove_note(payload, due, id)
    local prefix = redis.sha1hex(payload) .. packed_time(due) .. string.char(#id) .. id
    local note = redis.call('ZRANGE', KEYS.notes, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
    if note then
        redis.call('ZREM', KEYS.notes, note)
        return string.sub(note, 41)
    end
end

-- The pending job of this id, with this field, is due at another time: its field and its note say so. This is the first write.
local function move_note(id, field, due)
    local entry, kind = entry_of(field), kind_of(field)
    if kind == 'p' then
        return
    end
    local payload = string.sub(entry, 10 + string.byte(entry))
    check_notes()
    redis.call('HSET', KEYS.jobs, id, field_of(kind, first_of(field), due, entry))
    local data = remove_note(payload, due_of(field), id)
    if data then
        add_note(payload, packed_time(due) .. string.sub(data, 7))
    end
end
