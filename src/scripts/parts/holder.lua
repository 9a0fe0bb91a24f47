-- Finds what holds the id of a job that is not pending any more. A part of the scripts about jobs, behind
-- parts/entry, parts/field and parts/note.
-- Provides  KNOWS_HOLDERS, has_scanned_much, holder_of, is_stale, check_holder, remove_holder_note,
--           remove_holder
local KNOWS_HOLDERS = true
-- elements of lists that one call searches, about
local MUCH = 1000000
local scanned = 0

-- Whether a call should leave the rest to the next one.
local function has_scanned_much()
    return scanned > MUCH
end

-- {state: 'ready', 'running', 'waiting' or 'dead'; at: when it was due, or its retry is, epoch ms; first:
-- time of the first offer; and what it is}; or nil if the field is stale. Whether a payload is ready is a
-- native scan of the target. An entry that was not due has been removed, and an equal payload is another one.
local function holder_of(id, field, now)
    if not field then
        return nil
    end
    if kind_of(field) == 'h' and has_entry(field) and due_of(field) <= now + AHEAD then
        local payload = payload_of(entry_of(field))
        scanned = scanned + redis.call('LLEN', KEYS.target) + redis.call('LLEN', KEYS.inbox)
        local list = redis.call('LPOS', KEYS.target, payload) and KEYS.target
            or redis.call('LPOS', KEYS.inbox, payload) and KEYS.inbox
        return list and {
            state = 'ready', at = due_of(field), first = first_of(field), list = list, payload = payload, id = id,
        }
    elseif is_of_message(field) then
        local holder = {at = due_of(field), first = first_of(field), message = message_of(field)}
        if redis.call('HEXISTS', KEYS.messages, holder.message) == 1 then
            local at = redis.call('ZSCORE', KEYS.retries, holder.message)
            holder.state, holder.at = at and 'waiting' or 'running', tonumber(at) or holder.at
            return holder
        end
        holder.state = 'dead'
        -- Its content is the letter. The set of letters may have been deleted by hand, and is soon complete
        -- again.
        return redis.call('HEXISTS', KEYS.dead_messages, holder.message) == 1 and holder
    end
end

-- Whether the payload is gone whose entry this field names, and what travels with it waits for nobody.
-- Nothing is pending under the id, and nothing holds it. Without a hold, the payload may be ready once it was
-- due.
local function is_stale(field, now)
    local kind = has_entry(field) and kind_of(field)
    return kind == 'h' or kind == 'd' and due_of(field) > now + AHEAD
end

-- Fails, before the first write, if the message may not be removed. Changes nothing. The permission may be
-- for some keys only.
local function check_holder(holder)
    if holder.state == 'waiting' then
        redis.call('ZREM', KEYS.retries, '')
        redis.call('HDEL', KEYS.messages, '')
    elseif holder.state == 'dead' then
        redis.call('ZREM', KEYS.dead, '')
        redis.call('HDEL', KEYS.dead_messages, '')
    end
end

-- What travels with a payload that is ready does so no longer.
local function remove_holder_note(holder)
    if holder.state == 'ready' then
        remove_note(holder.payload, holder.at, holder.id, true)
    end
end

-- Removes what is ready, waits for a retry or is dead. The caller has ensured that it may.
local function remove_holder(holder)
    if holder.state == 'ready' then
        -- Of equal payloads, the call may have removed the one in the target for another job.
        if holder.list ~= KEYS.target or redis.call('LREM', KEYS.target, 1, holder.payload) == 0 then
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
