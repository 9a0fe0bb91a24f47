-- Claims messages. A part of `receive`.
-- Provides  Claims

-- The messages of one call, as long as their payloads stay below 1 MB in sum; the first one may be of any
-- size. Of a call that is repeated, 128 KB are sent.
local Claims = {AGAIN = 131072, EXPIRED = 1000}

-- `till` is when the leases end. `is_first_try` says that no other try of this call was executed.
function Claims.new(noted, token, policy, now, till, is_first_try, has_notes)
    return {
        has_notes = has_notes, now = now, expired = 0,
        noted = noted, token = token, policy = policy, till = till, till_text = string.format('%d', till),
        first = struct.pack('>I6', now), is_first_try = is_first_try, ids = {}, members = {}, records = {}, bytes = 0,
        -- The new messages among them have numbers in a row. The others are named by their members.
        from = 0, new = 0, redelivered = {},
    }
end

-- The id of the new message that has this number among the claims of the call. Ids are in the order of time,
-- as tokens are.
local function new_id(token, number)
    return string.sub(token, 1, 14) .. struct.pack('>I2', number)
end

-- What a receipt says of them.
function Claims.packed(claims)
    return struct.pack('>I2I2', claims.from, claims.new) .. table.concat(claims.redelivered)
end

-- The members that a receipt names, in the order in which they were claimed.
function Claims.unpacked(token, receipt, at)
    local members, from, new = {}, struct.unpack('>I2I2', receipt, at)
    for start = at + 4, #receipt, 20 do
        members[#members + 1] = string.sub(receipt, start, start + 19)
    end
    for number = from, from + new - 1 do
        table.insert(members, number + 1, new_id(token, number) .. struct.pack('>I4', 1))
    end
    return members
end

function Claims.add(claims, id, member, record)
    local at = #claims.ids + 1
    claims.ids[at], claims.members[at], claims.records[at] = id, member, record
end

-- A payload that has expired is popped like those that are claimed, and is a message until then, so that
-- nothing is lost if the server refuses a command. Then it is a dead letter, or gone. If that is refused, it
-- waits, and no receiver begins it.
local function end_expired(claims, data, id, record)
    local noted, is_discarded = claims.noted, has_flag(data, DISCARDED)
    local refused = not is_discarded and bury(id, record, claims.now, 'expired', '')
    if refused then
        noted.unburied = refused
        redis.call('HSET', KEYS.messages, id, changed(record, NEVER, 0, 0, stored_policy(record)))
        redis.call('ZADD', KEYS.retries, string.format('%.0f', claims.now + LATER), id)
        return
    end
    noted.expired = noted.expired + 1
    if is_discarded then
        redis.call('HDEL', KEYS.messages, id)
        end_job(data, id)
    else
        noted.buried = noted.buried + 1
    end
end

-- Claims messages that are due for redelivery, until there are `most` claims in all.
function Claims.retries(claims, most, now)
    most = most - #claims.members
    if most <= 0 then
        return
    end
    local due = redis.call('ZRANGEBYSCORE', KEYS.retries, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)
    if due[1] then
        -- Nothing has this name. It shows that what is claimed may be removed, or others would claim it again
        -- at once.
        redis.call('ZREM', KEYS.retries, '')
    end
    for _, id in ipairs(due) do
        local record = redis.call('HGET', KEYS.messages, id)
        if record and is_newer(record) then
            redis.call('ZADD', KEYS.retries, 'XX', string.format('%.0f', now + LATER), id)
            claims.noted.newer = claims.noted.newer + 1
        elseif not record or not is_readable(record) then
            redis.call('ZREM', KEYS.retries, id)
            claims.noted.gone = claims.noted.gone + (record and 0 or 1)
        else
            local bytes = claims.bytes + #record
            if bytes > MOST_BYTES and #claims.members > 0 then
                return
            end
            claims.bytes = bytes
            if end_cancelled(record, id) then
                redis.call('ZREM', KEYS.retries, id)
            elseif counts(record) == NEVER and data_in(record) then
                redis.call('ZREM', KEYS.retries, id)
                end_expired(claims, data_in(record), id, changed(record, 1, 0, 0, stored_policy(record)))
            else
                local delivery, failed, lost = counts(record)
                record = claimed_again(changed(record, delivery + 1, failed, lost, claims.policy), claims.first)
                redis.call('HSET', KEYS.messages, id, record)
                local member = id .. string.sub(record, 2, 5)
                redis.call('ZADD', KEYS.leases, claims.till_text, member)
                Claims.add(claims, id, member, record)
                claims.redelivered[#claims.redelivered + 1] = member
                redis.call('ZREM', KEYS.retries, id)
            end
        end
    end
end

-- Whether new messages may have these ids, the next `count` ones of the call; or those of messages that have
-- expired. If the receipt was deleted by hand, another try may have given them to messages, which must not be
-- overwritten: they are delivered again when their leases end.
local function are_free(claims, count)
    local ids = {}
    for number = #claims.members, #claims.members + count - 1 do
        ids[#ids + 1] = new_id(claims.token, number)
    end
    for number = 65535 - claims.expired, 65536 - claims.expired - count, -1 do
        ids[#ids + 1] = new_id(claims.token, number)
    end
    local messages = redis.pcall('HMGET', KEYS.messages, unpack(ids))
    local letters = redis.pcall('HMGET', KEYS.dead_messages, unpack(ids))
    for i = 1, #ids do
        if messages[i] or letters[i] then
            return false
        end
    end
    return true
end

-- Claims payloads from the head of the inbox or of the target, until there are `most` claims in all. Returns
-- whether it came to the end of the list.
function Claims.payloads(claims, is_inbox, most)
    local chunk = 16
    local fresh = new_record(claims.policy, claims.first)
    local number = string.sub(fresh, 2, 5)
    if claims.new == 0 then
        claims.from = #claims.members
    end
    while #claims.members < most do
        local wanted = math.min(most - #claims.members, chunk)
        local payloads, last = nil, string.format('%d', wanted - 1)
        if is_inbox then
            payloads = redis.call('LRANGE', KEYS.inbox, '0', last)
        else
            payloads = redis.call('LRANGE', KEYS.target, '0', last)
        end
        if #payloads > 0 and not claims.is_first_try and not are_free(claims, #payloads) then
            -- The next call has other ids.
            return false
        end
        local jobs = {}
        if claims.has_notes and #payloads > 0 then
            jobs = travelling(payloads, claims.now)
        end
        local fields, leases, count, is_full, messages, expired = {}, {}, 0, false, {}, {}
        for i, payload in ipairs(payloads) do
            local bytes = claims.bytes + #payload
            if bytes > MOST_BYTES and #claims.members + claims.expired > 0 then
                is_full = true
                break
            end
            claims.bytes = bytes
            local job = jobs[i]
            local expires = job and expires_in(job.data) or 0
            local is_over = 0 < expires and expires <= claims.now
            local record = (job and new_record(claims.policy, claims.first, job.data) or fresh) .. payload
            local id = new_id(claims.token, is_over and 65535 - claims.expired or #claims.members)
            messages[i] = id
            count = count + 1
            fields[2 * count - 1], fields[2 * count] = id, record
            if is_over then
                claims.expired = claims.expired + 1
                expired[#expired + 1] = {job.data, id, record}
            else
                local member = id .. number
                leases[#leases + 1], leases[#leases + 2] = claims.till_text, member
                Claims.add(claims, id, member, record)
            end
        end
        if count == 0 then
            return #payloads == 0
        end
        local claimed = #leases / 2
        local is_many = claimed >= MANY
        if is_many then
            leases[#leases + 1], leases[#leases + 2] = claims.till_text, LONG
        end
        local stored = redis.pcall('HSET', KEYS.messages, unpack(fields))
        local added = stored
        if type(stored) == 'number' and claimed > 0 then
            added = redis.pcall('ZADD', KEYS.leases, unpack(leases))
        end
        local popped = added
        if type(added) == 'number' and is_inbox then
            popped = redis.pcall('LTRIM', KEYS.inbox, string.format('%d', count), '-1')
        elseif type(added) == 'number' then
            popped = redis.pcall('LTRIM', KEYS.target, string.format('%d', count), '-1')
        end
        if is_many then
            redis.pcall('ZREM', KEYS.leases, LONG)
        end
        if popped.err then
            -- Nothing is claimed.
            for i = 1, count do
                redis.pcall('HDEL', KEYS.messages, fields[2 * i - 1])
            end
            for i = 1, claimed do
                redis.pcall('ZREM', KEYS.leases, leases[2 * i])
                table.remove(claims.ids)
                table.remove(claims.members)
                table.remove(claims.records)
            end
            error(popped.err, 0)
        end
        claims.new = claims.new + claimed
        if claims.has_notes then
            for i = count + 1, #payloads do
                jobs[i] = nil
            end
            claim_jobs(jobs, messages)
            for _, one in ipairs(expired) do
                end_expired(claims, unpack(one))
            end
        end
        if is_full or claims.expired >= Claims.EXPIRED then
            return false
        elseif #payloads < wanted then
            return true
        end
        -- As many as will fit, if the next ones are as long.
        chunk = math.max(1, math.min(64, math.floor(MOST_BYTES / (claims.bytes / (#claims.members + claims.expired) + 1))))
    end
    return false
end
