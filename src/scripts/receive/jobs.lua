-- What becomes of jobs with data when their messages are claimed, given back or done. A part of the scripts that do so, behind
-- parts/field, parts/note and receive/record.
-- Provides  make_ready, end_job, rename_job, is_cancelled

-- What a message does to the field of its id, if that is still the field of this message.
local function change_field(data, message, change)
    if not data or not has_flag(data, HOLDS) then
        return
    end
    local id = id_in(data)
    local field = redis.pcall('HGET', KEYS.jobs, id)
    if type(field) == 'string' and kind_of(field) == 'm' and message_of(field) == message then
        change(id, first_of(field))
    end
end

-- The payload of this message is in the target again.
local function make_ready(record, message)
    local data, payload = data_in(record), payload_in(record)
    if not data then
        return
    end
    add_note(payload, data)
    change_field(data, message, function(id, first)
        redis.pcall('HSET', KEYS.jobs, id, field_of('h', first, due_in(data), entry_with(id, payload)))
    end)
end

-- The message is no more. If that is refused, a sweep finds it.
local function end_job(data, message)
    change_field(data, message, function(id)
        redis.pcall('HDEL', KEYS.jobs, id)
    end)
end

-- The message has another id from now on.
local function rename_job(data, message, other)
    if other ~= message then
        change_field(data, message, function(id, first)
            redis.pcall('HSET', KEYS.jobs, id, claimed_field(first, other))
        end)
    end
end

local function is_cancelled(record)
    local data = data_in(record)
    return data and has_flag(data, CANCELLED)
end
