-- Gives the payloads of messages back to the target. A part of the scripts that do so, behind receive/jobs.
-- Provides  are_notes_new, make_ready
local has_added = false

-- Whether this call has added notes, which its claims may need.
local function are_notes_new()
    return has_added
end

-- What travels with this payload waits for it, and its id is that of a ready job. Returns an error if the
-- server refuses that. Then nothing has changed.
local function note_again(payload, data, id, field)
    local noted = add_note(payload, data)
    if type(noted) == 'table' or not id then
        return type(noted) == 'table' and noted or nil
    end
    local held = redis.pcall('HSET', KEYS.jobs, id, field_of('h', first_of(field), due_in(data), entry_with(id, payload)))
    if type(held) == 'table' then
        pcall(remove_note, payload, due_in(data), id, true)
        return held
    end
end

-- Brings the payload of this message to the head of the target. What has begun does not expire any more.
-- Returns an error if the server refuses that. Then nothing has changed. Otherwise, the caller removes the
-- message.
local function make_ready(record, message, has_begun)
    local data, payload = data_in(record), payload_in(record)
    local id, field = held_by(data, message)
    if data then
        -- A sweep removes what says that it holds an id, and does not.
        data = id and data or without_hold(data)
        data = has_begun and without_expiry(data) or data
        local refused = note_again(payload, data, id, field)
        if refused then
            return refused
        end
    end
    local pushed = redis.pcall('LPUSH', KEYS.target, payload)
    if type(pushed) == 'table' then
        if data then
            pcall(remove_note, payload, due_in(data), id_in(data), has_flag(data, HOLDS))
        end
        if id then
            redis.pcall('HSET', KEYS.jobs, id, field)
        end
        return pushed
    elseif data then
        has_added = true
        redis.pcall('HSET', KEYS.control, 'notes', '1')
    end
end
