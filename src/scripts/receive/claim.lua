-- Claims messages. A part of `receive`.
-- Provides  Claims

-- The messages of one call, as long as their payloads stay below 1 MB in sum; the first one may be of any size.
local Claims = {BYTES = 1048576}

-- `till` is when the leases end.
function Claims.new(queue, token, policy, now, till)
    return {
        queue = queue, token = token, policy = policy, till = string.format('%.0f', till),
        first = struct.pack('>I8', now), members = {}, records = {}, bytes = 0,
    }
end

-- Adds one, and returns its id.
function Claims.add(claims, id, record)
    claims.members[#claims.members + 1] = id .. string.sub(record, 2, 5)
    claims.records[#claims.records + 1] = record
end

-- Claims up to `most` messages that are due for redelivery.
function Claims.retries(claims, most, now)
    local queue = claims.queue
    local due = redis.call('ZRANGEBYSCORE', queue.retries, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)
    for _, id in ipairs(due) do
        local record = redis.call('HGET', queue.messages, id)
        if not record or not is_readable(record) then
            redis.call('ZREM', queue.retries, id)
        else
            local bytes = claims.bytes + #record
            if bytes > Claims.BYTES and #claims.members > 0 then
                return
            end
            local delivery, failed, lost = counts(record)
            record = header(delivery + 1, failed, lost, claims.policy, string.sub(record, 21, 28)) .. payload_in(record)
            redis.call('HSET', queue.messages, id, record)
            redis.call('ZADD', queue.leases, claims.till, id .. string.sub(record, 2, 5))
            redis.call('ZREM', queue.retries, id)
            claims.bytes = bytes
            Claims.add(claims, id, record)
        end
    end
end

-- Claims up to `most` payloads from the head of a list.
function Claims.payloads(claims, list, most)
    local queue, chunk = claims.queue, 16
    while most > 0 do
        local payloads = redis.call('LRANGE', list, 0, math.min(most, chunk) - 1)
        local fields, leases, count = {}, {}, 0
        for _, payload in ipairs(payloads) do
            local bytes = claims.bytes + #payload
            if bytes > Claims.BYTES and #claims.members > 0 then
                most = 0
                break
            end
            claims.bytes = bytes
            -- Ids are in the order of time, as the token is.
            local id = string.sub(claims.token, 1, 14) .. struct.pack('>I2', #claims.members)
            local record = header(1, 0, 0, claims.policy, claims.first) .. payload
            count = count + 1
            fields[2 * count - 1], fields[2 * count] = id, record
            leases[2 * count - 1], leases[2 * count] = claims.till, id .. string.sub(record, 2, 5)
            Claims.add(claims, id, record)
        end
        if count == 0 then
            return
        end
        local stored = redis.pcall('HSET', queue.messages, unpack(fields))
        local added = type(stored) == 'number' and redis.pcall('ZADD', queue.leases, unpack(leases)) or stored
        local popped = type(added) == 'number' and redis.pcall('LTRIM', list, count, -1) or added
        if popped.err then
            -- Nothing is claimed.
            for i = 1, count do
                redis.pcall('HDEL', queue.messages, fields[2 * i - 1])
                redis.pcall('ZREM', queue.leases, leases[2 * i])
                table.remove(claims.members)
                table.remove(claims.records)
            end
            error(popped.err, 0)
        end
        most = most - count
        if #payloads < math.min(most + count, chunk) then
            return
        end
        chunk = math.min(chunk * 2, 512)
    end
end
