-- Goes on with the beginning of `receive`: makes the usual calls that acknowledge many deliveries, or find
-- many payloads. To create the functions for everything else would take as long as to claim ten.
-- Provides  MANY, LONG, MOST_BYTES, error_text, reply_for_many

-- No member of a set is that long: with it, the server makes the set a skip list, which it does not become
-- again. A short set is a list otherwise, in which each of these commands searches from the start.
local MANY, LONG = 16, string.rep('x', 65)
local MOST_BYTES = 1048576 -- of payloads that a call claims, but for the first one

local function error_text(error)
    return type(error) == 'table' and error.err or tostring(error)
end

-- The first payloads of the target; nil if they are too long for one call, which shows when they are read.
-- Without the permission, that is said of an empty target, too.
local function first_payloads(ready)
    local payloads, bytes = {}, 0
    local count = math.min(most, math.max(ready, 1), 1000)
    for from = 0, count - 1, 16 do
        local last = math.min(from + 16, count) - 1
        local read = redis.call('LRANGE', KEYS.target, string.format('%d', from), string.format('%d', last))
        for i = 1, #read do
            payloads[from + i] = read[i]
            bytes = bytes + #read[i]
        end
        if bytes > MOST_BYTES then
            return nil
        end
    end
    return payloads
end

-- Of the claims: id, record, id, record... and end, member, end, member..., where those begin that are
-- stored.
local fields, leases, first = {}, {}, 1

-- Makes a call for many, and returns its reply; nil if it is not a usual one. What raises an error is before
-- the first settlement. The functions are of receive/many_jobs.lua, where payloads may be jobs with data.
local function call_for_many(usual_jobs, claim_jobs, end_acknowledged)
    local ready = most > 0 and redis.call('LLEN', KEYS.target) or 0
    local lease_ends = tonumber(redis.call('ZRANGE', KEYS.leases, '0', '0', 'WITHSCORES')[2])
    local retry_due = tonumber(redis.call('ZRANGE', KEYS.retries, '0', '0', 'WITHSCORES')[2])
    local has_ended = lease_ends and lease_ends <= now or retry_due and retry_due <= now
    if has_ended or most > 0 and redis.call('LLEN', KEYS.inbox) > 0 then
        return nil
    end
    local payloads = first_payloads(ready)
    if not payloads then
        return nil
    end
    local count, jobs, messages = #payloads, {}, {}
    if usual_jobs and count > 0 then
        jobs = usual_jobs(payloads)
        if not jobs then
            return nil
        end
    end
    redis.call('HDEL', KEYS.receipts, receiver)
    if count > 0 then
        local till = string.format('%d', now + lease)
        local head, common = '\1\0\0\0\1\0\0\0\0' .. policy .. struct.pack('>I6', now), string.sub(token, 1, 14)
        leases, first = {till, LONG}, count < MANY and 3 or 1
        for i = 1, count do
            local id = common .. struct.pack('>I2', i - 1)
            local job = jobs[i]
            messages[i] = id
            fields[2 * i - 1], fields[2 * i] = id, (job and job.head or head) .. payloads[i]
            leases[2 * i + 1], leases[2 * i + 2] = till, id .. '\0\0\0\1'
        end
        redis.call('HSET', KEYS.messages, unpack(fields))
        redis.call('ZADD', KEYS.leases, unpack(leases, first))
        redis.call('LTRIM', KEYS.target, string.format('%d', count), '-1')
        is_popped = true
        if count >= MANY then
            redis.pcall('ZREM', KEYS.leases, LONG)
        end
        if claim_jobs then
            claim_jobs(jobs, messages)
        end
    end
    local ok, results = true, {}
    if acks > 0 then
        ok, results = pcall(acknowledge, ARGV, MEMBERS, MEMBERS + acks - 1)
        if ok and acks_with_ids > 0 then
            pcall(end_acknowledged, ARGV, MEMBERS, results, ARGV, MEMBERS + acks, #ARGV)
        end
        lease_ends = tonumber(redis.pcall('ZRANGE', KEYS.leases, '0', '0', 'WITHSCORES')[2])
    end
    local refused = not ok and error_text(results)
    results = ok and table.concat(results) or string.rep('r', acks)
    if count > 0 then
        lease_ends = math.min(lease_ends or now + lease, now + lease)
    end
    local outcome = struct.pack('>I6I4', now, #results) .. results .. '\0' .. struct.pack('>I2I2', 0, count)
    redis.pcall('HSET', KEYS.receipts, receiver, token .. outcome)
    local left = ready > count and 1 or 0
    local out = {struct.pack(REPLY, now, lease_ends or -1, retry_due or -1, left, 0, 0, 0, 0, 0, 0, 0, 0, -1), '', '', results}
    for _ = 1, refused and acks or 0 do
        out[#out + 1] = refused
    end
    local before = #out
    for i = 1, 2 * count do
        out[before + i] = fields[i]
    end
    return out
end

-- The same, or nil if the rest of the script makes the call.
local function reply_for_many(...)
    local ok, reply = pcall(call_for_many, ...)
    if ok and reply then
        return reply
    end
    if is_popped then
        -- The leases are what is left of this call. The ids are taken.
        is_usual, is_first_try = false, false
    else
        -- The server may have refused to claim them.
        for i = 1, #fields, 2 do
            redis.pcall('HDEL', KEYS.messages, fields[i])
        end
        for i = first + 1, #leases, 2 do
            redis.pcall('ZREM', KEYS.leases, leases[i])
        end
    end
end

is_usual = is_usual and acks <= 1000
if is_usual and acks_with_ids == 0 and not has_notes then
    local reply = reply_for_many()
    if reply then
        return reply
    end
end
