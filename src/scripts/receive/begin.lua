-- The beginning of `receive`: reads what every call needs, and makes the usual ones. Most calls acknowledge
-- one delivery at most and find one payload at most, while no lease has ended, no retry is due, and the queue
-- has no limits. To create the functions for everything else would take longer than such a call.
-- receive/many.lua goes on.
-- Provides  receiver, token, policy, words, most, acks, extends, others, acks_with_ids, extends_with_ids,
--           seed, most_dead, dead_age, last, pause, MEMBERS, REPLY, lease, time, now, control, receipt,
--           is_known, is_late, is_first_try, has_notes, is_popped, is_usual
local receiver, token, policy, words = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local most, acks, extends, others, acks_with_ids, extends_with_ids, seed, most_dead, dead_age, last, pause =
    struct.unpack('>I4I4I4I4I4I4I4I8I8I8I8', ARGV[5])
local MEMBERS = 6 -- where they begin
local REPLY = '>i8i8i8i8i8i8i8i8i8i8i8i8i8' -- its numbers
local _, _, lease = struct.unpack('>HHI4', policy)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local control = redis.pcall('HMGET', KEYS.control, 'seen', 'silences', 'paused', 'most', 'interval', 'burst', 'next', 'spared', 'notes')
local receipt = redis.call('HGET', KEYS.receipts, receiver)
local is_known, is_late, is_first_try = false, false, false
if receipt and #receipt >= 16 then
    is_known = string.sub(receipt, 1, 16) == token
    -- Tokens are in the order of the calls. The network may deliver a try after its retry and a later call
    -- were answered: it must not claim messages that no receiver gets, under ids that its retry has given to
    -- others.
    local last_time, last_count = struct.unpack('>I6I6', receipt)
    local time_of_this, count_of_this = struct.unpack('>I6I6', token)
    is_late = last_time > time_of_this or last_time == time_of_this and last_count > count_of_this
    -- The receipt of the call before is still there, so no other try of this one was executed: it would have
    -- left its own.
    is_first_try = not is_known and not is_late
end

local has_limits, has_notes = control[3] or control[4] or control[5], control[9]
local claimed -- the id of the message, once it may be stored
local is_popped = false -- whether the lists have lost what is claimed, so that only its message has it

-- The job that this payload is, if that is as usual: its only note is of the job that has the id, and has not
-- expired. Returns the data, the id, its field, and the SHA-1 of the payload; nothing if nothing travels with
-- it; or false. parts/note.lua and parts/field.lua have the bytes.
local function usual_job(payload)
    local sha1 = redis.sha1hex(payload)
    local note = redis.call('HMGET', KEYS.notes, sha1)[1]
    if not note then
        return
    elseif string.sub(note, 1, 1) ~= '0' then
        return false
    end
    local length = string.byte(note, 8)
    if not length or #note < 21 + length then
        return false
    end
    local id, holds = string.sub(note, 9, 8 + length), string.byte(note, 9 + length) % 2 == 1
    local entry = string.char(length) .. id .. struct.pack('<I8', #payload) .. payload
    local field = redis.call('HMGET', KEYS.jobs, id)[1]
    local high, low = struct.unpack('>I2I4', note, 16 + length)
    local expires = high * 4294967296 + low
    if
        not field or string.sub(field, 1, 1) ~= (holds and 'h' or 'd') or string.sub(field, 14) ~= entry
        or expires > 0 and expires <= now
        or redis.call('ZMSCORE', KEYS.timeout_set, entry)[1]
    then
        return false
    end
    return string.sub(note, 2), id, field, sha1
end

-- Makes a call for one delivery and one payload at most, and returns its reply; nil if it is not one. What
-- raises an error is before the first settlement.
local function call_for_one()
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
    local payload, record, data, id, field, sha1
    if waiting > 0 then
        payload = redis.call('LRANGE', KEYS.inbox, '0', '0')[1]
    elseif most > 0 then
        payload = redis.call('LRANGE', KEYS.target, '0', '0')[1]
    end
    if payload and has_notes then
        data, id, field, sha1 = usual_job(payload)
        if data == false then
            return nil
        end
    end
    redis.call('HDEL', KEYS.receipts, receiver)
    if payload then
        local at = struct.pack('>I6', now)
        if data then
            record = '\2\0\0\0\1\0\0\0\0' .. policy .. at .. at .. struct.pack('>HH', #data, 0) .. data .. payload
        else
            record = '\1\0\0\0\1\0\0\0\0' .. policy .. at .. payload
        end
        claimed = string.sub(token, 1, 14) .. '\0\0'
        redis.call('HSET', KEYS.messages, claimed, record)
        redis.call('ZADD', KEYS.leases, string.format('%d', now + lease), claimed .. '\0\0\0\1')
        if waiting > 0 then
            redis.call('LTRIM', KEYS.inbox, '1', '-1')
        else
            redis.call('LTRIM', KEYS.target, '1', '-1')
        end
        is_popped = true
        if data then
            redis.pcall('HDEL', KEYS.notes, sha1)
            if string.sub(field, 1, 1) == 'h' then
                redis.pcall('HSET', KEYS.jobs, id, 'm' .. string.sub(field, 2, 13) .. claimed)
            else
                redis.pcall('HDEL', KEYS.jobs, id)
            end
        end
    end
    local result, refusal = '', nil
    if acks == 1 then
        local member, held = ARGV[MEMBERS], ARGV[MEMBERS + 2]
        local done = redis.pcall('ZREM', KEYS.leases, member)
        if done == 1 then
            if leases[1] == member then
                lease_ends = tonumber(leases[4])
            end
            local deleted = redis.pcall('HDEL', KEYS.messages, string.sub(member, 1, 16))
            done = type(deleted) == 'number' and 1 or deleted
        end
        -- The id that it holds is free.
        local of_done = done == 1 and held and redis.pcall('HMGET', KEYS.jobs, held)[1]
        if of_done and string.find(of_done, '^[mc]') and string.sub(of_done, 14) == string.sub(member, 1, 16) then
            redis.pcall('HDEL', KEYS.jobs, held)
        end
        refusal = type(done) == 'table' and done.err
        result = refusal and 'r' or done == 1 and '1' or '0'
    end
    if claimed then
        lease_ends = math.min(lease_ends or now + lease, now + lease)
    end
    local outcome = struct.pack('>I6I4', now, #result) .. result .. (claimed and '\0\0\0\0\1' or '\0\0\0\0\0')
    redis.pcall('HSET', KEYS.receipts, receiver, token .. outcome)
    local left = waiting + ready > 1 and 1 or 0
    local out = {struct.pack(REPLY, now, lease_ends or -1, retry_due or -1, left, 0, 0, 0, 0, 0, 0, 0, 0, -1), '', '', result}
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
local is_sweep = words ~= '' and words ~= 'retries '
local is_usual = is_first_try and is_noted and not (has_limits or is_sweep) and extends + others == 0
if is_usual and acks <= 1 then
    local ok, reply = pcall(call_for_one)
    if ok and reply then
        return reply
    elseif is_popped then
        -- The lease is what is left of this call. The id is taken.
        is_usual, is_first_try = false, false
    elseif claimed then
        -- The server has refused to claim it.
        redis.pcall('HDEL', KEYS.messages, claimed)
        redis.pcall('ZREM', KEYS.leases, claimed .. '\0\0\0\1')
        is_usual = false
    end
end
