-- What becomes of jobs with data when their messages are done, or have another id. A part of the scripts that
-- do so, behind parts/field, parts/note and receive/record.
-- Provides  held_by, end_job, rename_job, end_cancelled

-- The id that this message holds, and its field; nil if there is none.
local function held_by(data, message)
    local id = data and has_flag(data, HOLDS) and id_in(data)
    local field = id and redis.pcall('HGET', KEYS.jobs, id)
    if type(field) == 'string' and is_of_message(field, message) then
        return id, field
    end
end

-- The message is no more. If that is refused, a sweep finds it.
local function end_job(data, message)
    local id = held_by(data, message)
    if id then
        redis.pcall('HDEL', KEYS.jobs, id)
    end
end

-- The message has another id from now on.
local function rename_job(data, message, other)
    local id, field = nil, nil
    if other ~= message then
        id, field = held_by(data, message)
    end
    if id then
        redis.pcall('HSET', KEYS.jobs, id, claimed_field(field, other))
    end
end

-- Ends a message whose job was cancelled, instead of delivering it again. Returns whether it was.
local function end_cancelled(record, message)
    local id, field = held_by(data_in(record), message)
    if not id or kind_of(field) ~= 'c' then
        return false
    end
    redis.call('HDEL', KEYS.messages, message)
    redis.pcall('HDEL', KEYS.jobs, id)
    return true
end
