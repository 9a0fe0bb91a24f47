-- Turns messages into dead letters. A part of the scripts that do so.
-- Provides  bury, trim

-- A message becomes a dead letter, or is discarded if its policy says so. Returns an error if that is
-- refused. Nothing is lost then: a message without lease and retry is found by the next sweep.
local function bury(id, record, now, reason, error)
    local _, _, _, mode = policy_of(record)
    -- Changes nothing. If only this is refused, the message would be delivered, and be a dead letter, too.
    local refused = redis.pcall('HDEL', KEYS.messages, '')
    if type(refused) == 'table' then
        return refused
    end
    if mode ~= 'd' then
        local delivery, failed, lost = counts(record)
        local first = struct.unpack('>I6', first_claim_of(record))
        local letter = cmsgpack.pack({reason, error, failed, lost, first, now, delivery, payload_in(record), data_in(record)})
        local function read(id)
            return redis.pcall('HGET', KEYS.dead_messages, id)
        end
        local named = free_id(read, id)
        local kept = redis.pcall('HSET', KEYS.dead_messages, named, letter)
        if type(kept) == 'table' then
            return kept
        end
        -- A negative score says that it is to be sent on. They are in the order of time, too.
        local added = redis.pcall('ZADD', KEYS.dead, string.format('%.0f', mode == 's' and now - 1e15 or now), named)
        if type(added) == 'table' then
            -- The message may be acknowledged later: then no call would find this content.
            redis.pcall('HDEL', KEYS.dead_messages, named)
            return added
        end
        rename_job(data_in(record), id, named)
    else
        end_job(data_in(record), id)
    end
    local forgotten = redis.pcall('HDEL', KEYS.messages, id)
    return type(forgotten) == 'table' and forgotten or nil
end

-- Removes the oldest dead letters beyond `most`, and those that are older than `age` ms; at most 100. Zero
-- means no limit. Returns how many.
local function trim(now, most, age)
    local ids = {}
    if most > 0 then
        local excess = redis.call('ZCOUNT', KEYS.dead, 0, '+inf') - most
        if excess > 0 then
            ids = redis.call('ZRANGEBYSCORE', KEYS.dead, 0, '+inf', 'LIMIT', 0, math.min(excess, 100))
        end
    end
    if age > 0 and #ids == 0 then
        ids = redis.call('ZRANGEBYSCORE', KEYS.dead, 0, string.format('%.0f', now - age), 'LIMIT', 0, 100)
    end
    if #ids > 0 then
        redis.call('ZREM', KEYS.dead, unpack(ids))
        redis.call('HDEL', KEYS.dead_messages, unpack(ids))
    end
    return #ids
end
