-- Settles deliveries in other ways than `acknowledge`. A part of `receive`.
-- Provides  mark_cancelled, extend, settle

-- Says of jobs whose leases were extended that somebody has asked to cancel them: 'c'.
local function mark_cancelled(members, from, results, jobs, at, last)
    for_each_held(members, from, results, jobs, at, last, function(number, _, field)
        if kind_of(field) == 'c' then
            results[number] = 'c'
        end
    end)
end

-- Lets leases end at `till`. Never shortens one.
local function extend(members, from, to, till)
    local results, holding = held(members, from, to)
    for start = 1, #holding, 1000 do
        local pairs = {}
        for i = start, math.min(start + 999, #holding) do
            pairs[#pairs + 1] = till
            pairs[#pairs + 1] = holding[i]
        end
        redis.call('ZADD', KEYS.leases, 'XX', 'GT', unpack(pairs))
    end
    return results
end

-- A refusal is noted: the one who has settled the message may not wait for the answer.
local function end_dead(noted, id, record, now, reason, error)
    local refused = bury(id, record, now, reason, error)
    noted.unburied = refused or noted.unburied
    return refused or 'd'
end

-- Settles one delivery in another way. Returns '1' if that is done, '0' if it no longer holds, 'd' if the
-- message is a dead letter now, 'c' if the lease is extended, and somebody has asked to cancel the job; or an
-- error.
--   'f'ailed: retry after `ms`, and count it   's'nooze: retry after `ms`, do not count it
--   'x': reject, with a reason   'e'xtend by `ms`
--   'u'nread by any program: back to the head of the target, if it was never delivered before
local function settle(noted, now, verb, member, ms, reason, error)
    if not redis.call('ZSCORE', KEYS.leases, member) then
        return '0'
    end
    local id = string.sub(member, 1, 16)
    if verb == 'e' then
        redis.call('ZADD', KEYS.leases, 'XX', 'GT', string.format('%.0f', now + ms), member)
        -- The reason is the id that the message holds, or ''.
        local field = reason ~= '' and redis.pcall('HGET', KEYS.jobs, reason)
        local is_cancelled = type(field) == 'string' and is_of_message(field, id) and kind_of(field) == 'c'
        return is_cancelled and 'c' or '1'
    end
    local record = redis.call('HGET', KEYS.messages, id)
    -- The first write. If it is refused, nothing has changed; if a later one is, the next sweep finds the
    -- message.
    redis.call('ZREM', KEYS.leases, member)
    if not record or not is_readable(record) then
        noted.gone = noted.gone + (record and 0 or 1)
        return '0'
    end
    local delivery, failed, lost = counts(record)
    if end_cancelled(record, id) then
        return '1'
    end
    if verb == 'x' then
        return end_dead(noted, id, record, now, reason, error)
    end
    if verb == 'u' and delivery == 1 and failed + lost == 0 then
        -- Changes nothing. If only this is refused, the payload would be there twice.
        if type(redis.pcall('HDEL', KEYS.messages, '')) == 'number' and not make_ready(record, id, false) then
            redis.call('HDEL', KEYS.messages, id)
            return '1'
        end
        ms = 0
    end
    if verb == 'f' then
        local most = policy_of(record)
        record = with_error(changed(record, delivery, failed + 1, lost, stored_policy(record)), error)
        if failed + 1 >= most then
            return end_dead(noted, id, record, now, 'attempts', error)
        end
        redis.call('HSET', KEYS.messages, id, record)
    end
    redis.call('ZADD', KEYS.retries, string.format('%.0f', now + ms), id)
    noted.is_retry_earlier = noted.is_retry_earlier or redis.pcall('ZRANK', KEYS.retries, id) == 0
    return '1'
end
