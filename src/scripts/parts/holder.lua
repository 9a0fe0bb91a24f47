-- Finds what holds the id of a job that is not pending any more. A part of the scripts about jobs, behind parts/entry, parts/field
-- and parts/note.
-- Provides  KNOWS_HOLDERS, holder_of, remove_holder_note, remove_holder
local KNOWS_HOLDERS = true

-- {state: 'ready', 'running', 'waiting' or 'dead'; at: when it became ready or dead, or its retry is due, epoch ms; first: time of
-- the first offer; and what it is}; or nil if the field is stale. Whether a payload is ready is a native scan of the target.
local function holder_of(id, field)
    if not field or #field < 8 then
        return nil
    end
    if kind_of(field) == 'h' and has_entry(field) then
        local payload = payload_of(entry_of(field))
        local list = redis.call('LPOS', KEYS.target, payload) and KEYS.target
            or redis.call('LPOS', KEYS.inbox, payload) and KEYS.inbox
        return list and {
            state = 'ready', at = due_of(field), first = first_of(field), list = list, payload = payload, id = id,
        }
    elseif is_of_message(field) then
        local message, first = message_of(field), first_of(field)
        if redis.call('HEXISTS', KEYS.messages, message) == 1 then
            local at = redis.call('ZSCORE', KEYS.retries, message)
            return {state = at and 'waiting' or 'running', at = tonumber(at) or 0, first = first, message = message}
        end
        local died = redis.call('ZSCORE', KEYS.dead, message)
        return died and {state = 'dead', at = tonumber(died) % 1e15, first = first, message = message}
    end
end

-- What travels with a payload that is ready does so no longer.
local function remove_holder_note(holder)
    if holder.state == 'ready' then
        remove_note(holder.payload, holder.at, holder.id)
    end
end

-- Removes what is ready, waits for a retry or is dead. The caller has ensured that it may.
local function remove_holder(holder)
    if holder.state == 'ready' then
        if holder.list == KEYS.target then
            redis.call('LREM', KEYS.target, 1, holder.payload)
        else
            redis.call('LREM', KEYS.inbox, 1, holder.payload)
        end
    elseif holder.state == 'waiting' then
        redis.call('ZREM', KEYS.retries, holder.message)
        redis.call('HDEL', KEYS.messages, holder.message)
    elseif holder.state == 'dead' then
        redis.call('ZREM', KEYS.dead, holder.message)
        redis.call('HDEL', KEYS.dead_messages, holder.message)
    end
end
