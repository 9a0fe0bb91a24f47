-- The beginning of `receive`: reads what every call needs, and makes the usual ones. Most calls acknowledge one delivery at most and find
-- one payload at most, while no lease has ended, no retry is due, the queue has no limits, and nothing travels with payloads. To create the
-- functions for everything else would take longer than such a call.
-- Provides  receiver, token, most, policy, words, acks, extends, others, lease, time, now, control, receipt, is_known, is_late,
--           is_first_try
local receiver, token, most, policy, words = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[7]
local acks, extends, others = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local _, _, lease = struct.unpack('>HHI4', policy)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local control = redis.pcall('HMGET', KEYS.control, 'seen', 'silences', 'paused', 'most', 'interval', 'burst', 'next', 'spared', 'notes')
local receipt = redis.call('HGET', KEYS.receipts, receiver)
local is_known, is_late, is_first_try = false, false, false
if receipt and #receipt >= 16 then
    is_known = string.sub(receipt, 1, 16) == token
    -- Tokens are in the order of the calls. The network may deliver a try after its retry and a later call were answered: it
    -- must not claim messages that no receiver gets, under ids that its retry has given to others.
    local last_time, last_count = struct.unpack('>I6I6', receipt)
    local time_of_this, count_of_this = struct.unpack('>I6I6', token)
    is_late = last_time > time_of_this or last_time == time_of_this and last_count > count_of_this
    -- The receipt of the call before is still there, so no other try of this one was executed: it would have left
    -- its own.
    is_first_try = not is_known and not is_late
end

local claimed -- the id of the message, once it may be stored

-- Makes a usual call, and returns its reply; nil if it is not one. What raises an error is before the first settlement.
local function call_as_usual()
    local waiting, ready = 0, 0
    if most > 0 then
        waiting, ready = redis.call('LLEN', KEYS.inbox), redis.call('LLEN', KEYS.target)
        if most > 1 and waiting + ready > 1 then
            return nil
        end
    end
    local leases = redis.call('ZRANGE', KEYS.leases, '0', '1', 'WITHSCORES')
    local lease_ends = tonumber(leases[2])
    local retry_due = tonumber(redis.call('ZRANGE', KEYS.retries, '0', '0', 'WITHSCORES')[2])
    if lease_ends and lease_ends <= now or retry_due and retry_due <= now then
        return nil
    end
    local payload, record
    if waiting > 0 then
        payload = redis.call('LRANGE', KEYS.inbox, '0', '0')[1]
    elseif most > 0 then
        payload = redis.call('LRANGE', KEYS.target, '0', '0')[1]
    end
    redis.call('HDEL', KEYS.receipts, receiver)
    if payload then
        record = '\1\0\0\0\1\0\0\0\0' .. policy .. struct.pack('>I6', now) .. payload
        claimed = string.sub(token, 1, 14) .. '\0\0'
        redis.call('HSET', KEYS.messages, claimed, record)
        redis.call('ZADD', KEYS.leases, string.format('%d', now + lease), claimed .. '\0\0\0\1')
        if waiting > 0 then
            redis.call('LTRIM', KEYS.inbox, '1', '-1')
        else
            redis.call('LTRIM', KEYS.target, '1', '-1')
        end
    end
    local result, refusal = '', nil
    if acks == 1 then
        local done = redis.pcall('ZREM', KEYS.leases, ARGV[16])
        if done == 1 then
            if leases[1] == ARGV[16] then
                lease_ends = tonumber(leases[4])
            end
            local deleted = redis.pcall('HDEL', KEYS.messages, string.sub(ARGV[16], 1, 16))
            done = type(deleted) == 'number' and 1 or deleted
        end
        refusal = type(done) == 'table' and done.err
        result = refusal and 'r' or done == 1 and '1' or '0'
    end
    if claimed then
        lease_ends = math.min(lease_ends or now + lease, now + lease)
    end
    local outcome = struct.pack('>I6I4', now, #result) .. result .. (claimed and '\0\0\0\0\1' or '\0\0\0\0\0')
    redis.pcall('HSET', KEYS.receipts, receiver, token .. outcome)
    local out = {now, lease_ends or -1, retry_due or -1, waiting + ready > 1 and 1 or 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, '', result}
    if refusal then
        out[#out + 1] = refusal
    end
    if claimed then
        out[#out + 1] = claimed
        out[#out + 1] = record
    end
    return out
end

local seen = tonumber(control[1])
-- The clock needs no note yet: see look_at_the_clock in receive/recover.lua.
local is_noted = seen and now >= seen and now - seen < math.min(lease / 25, 1000)
local has_limits, has_notes = control[3] or control[4] or control[5], control[9]
local is_sweep = words ~= '' and words ~= 'retries '
if is_first_try and is_noted and not (has_limits or has_notes or is_sweep) and acks <= 1 and extends + others == 0 and ARGV[14] == '0' then
    local ok, reply = pcall(call_as_usual)
    if ok and reply then
        return reply
    elseif claimed then
        -- The server has refused to claim it.
        redis.pcall('HDEL', KEYS.messages, claimed)
        redis.pcall('ZREM', KEYS.leases, claimed .. '\0\0\0\1')
    end
end
