-- Recovers messages whose receivers are gone. A part of `receive`.
-- Provides  look_at_the_clock, recover, sweep

local DAY = 86400000 -- ms
local LONGEST = 3600000 -- ms: no message waits for longer after a loss
local RECOVERED = 4194304 -- bytes of records that one call takes back, about
local GRACE = 1500 -- ms: the longest pause between two attempts to connect, and the time that it takes

-- Compares the clock with the last sign of life of any receiver. Returns the silences before it that still matter: when each
-- ended, and how long it was. Later ones are shorter.
local function look_at_the_clock(queue, now, lease, seen, known)
    seen = tonumber(seen)
    local silences = {}
    for ended, length in string.gmatch(known or '', '(%d+):(%d+)') do
        ended, length = tonumber(ended), tonumber(length)
        -- One that ended in the future is from before the clock was set back.
        if ended <= now and now < ended + 2 * length + GRACE then
            silences[#silences + 1] = {ended, length}
        end
    end
    if seen and now >= seen and now - seen < math.min(lease / 12, 1000) then
        return silences
    end
    -- No lease is longer than a day, or shorter than 100 ms.
    local silence = math.min(now - (seen or 0), 43200000)
    if not seen and redis.call('ZCARD', queue.leases) == 0 then
        silence = 0
    end
    if silence > 50 then
        while #silences > 0 and silences[#silences][2] <= silence do
            silences[#silences] = nil
        end
        silences[#silences + 1] = {now, silence}
    elseif seen and now < seen - 1000 then
        -- The clock was set back, so leases end too late: see `sweep`.
        redis.call('HSET', queue.control, 'back', string.format('%.0f', seen))
        redis.call('HDEL', queue.control, 'cursor')
    end
    local known = {}
    for _, silence in ipairs(silences) do
        known[#known + 1] = string.format('%.0f:%.0f', silence[1], silence[2])
    end
    redis.call('HSET', queue.control, 'seen', string.format('%.0f', now), 'silences', table.concat(known, ' '))
    return silences
end

-- When a lease of this length may be ended. After a silence of more than a quarter of it, those who were silent may live and be
-- about to extend theirs: they are given half of it, and time to connect again. Their pauses have grown with the silence.
-- Without a silence, somebody has extended it while half of it was left, or nobody will.
local function grace(silences, lease)
    for i = #silences, 1, -1 do
        local ended, length = silences[i][1], silences[i][2]
        if length > lease / 4 then
            return ended + math.max(math.ceil(lease / 2), math.min(GRACE, length * 1.25 + 250))
        end
    end
    return 0
end

-- Takes messages back whose leases have ended: 100 a call. Returns how many, how many of them are dead letters now, and when
-- the next of the others may be taken back.
local function recover(queue, now, silences)
    local taken, dead, later, bytes = 0, 0, nil, 0
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue.leases, '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)) do
        local id = string.sub(member, 1, 16)
        local record = redis.call('HGET', queue.messages, id)
        bytes = bytes + #(record or '')
        if bytes > RECOVERED and taken > 0 then
            later = now
            break
        end
        local holds = record and is_readable(record) and string.sub(record, 2, 5) == string.sub(member, 17)
        local _, most, lease = policy_of(holds and record or string.rep('\0', 24))
        local till = holds and grace(silences, lease) or 0
        if now < till then
            later = math.min(later or till, till)
        else
            redis.call('ZREM', queue.leases, member)
            queue.gone = queue.gone + (record and 0 or 1)
        end
        if holds and now >= till then
            taken = taken + 1
            local delivery, failed, lost = counts(record)
            lost = lost + 1
            record = header(delivery, failed, lost, stored_policy(record), first_of(record))
                .. payload_in(record)
            if lost >= most then
                dead = dead + 1
                bury(queue, id, record, now, 'lost', '')
            else
                -- A payload that kills its process, and the innocent ones beside it, part ways after the first loss.
                local pause = lost == 1 and 0 or math.random() * math.min(2 ^ math.min(lost - 1, 20) * lease, LONGEST)
                redis.call('HSET', queue.messages, id, record)
                redis.call('ZADD', queue.retries, string.format('%.0f', now + pause), id)
            end
        end
    end
    return taken, dead, later
end

-- Looks for messages that have neither a lease nor a retry, because somebody removed it or a write was refused: they are due for
-- redelivery at once. There are none if the numbers agree. After the clock was set back, cuts leases that end too late, once.
-- Up to a hundred messages a call. Returns whether other keys do not agree: see agree.lua.
local function sweep(queue, now)
    local cursor, back = unpack(redis.call('HMGET', queue.control, 'cursor', 'back'))
    local held = redis.call('ZCARD', queue.leases) + redis.call('ZCARD', queue.retries)
    local known = redis.call('HLEN', queue.messages)
    if back or known ~= held then
        local found, next = scan(queue.messages, string.match(cursor or '', '^%d+$') or '0', 100)
        for i = 1, #found, 2 do
            local id, record = found[i], found[i + 1]
            local member = id .. string.sub(record, 2, 5)
            local till = redis.call('ZSCORE', queue.leases, member)
            if not till then
                if not redis.call('ZSCORE', queue.retries, id) then
                    redis.call('ZADD', queue.retries, string.format('%.0f', now), id)
                end
            elseif back then
                local _, _, lease = policy_of(record)
                if tonumber(till) > now + lease then
                    redis.call('ZADD', queue.leases, 'XX', string.format('%.0f', now + lease), member)
                end
            end
        end
        if next == '0' then
            redis.call('HDEL', queue.control, 'back', 'cursor')
        else
            redis.call('HSET', queue.control, 'cursor', next)
        end
    end
    -- Receipts of receivers that died a day ago. A token begins with its time.
    local receipts = redis.call('HSCAN', queue.receipts, '0', 'COUNT', 100)[2]
    for i = 1, #receipts, 2 do
        local high, low = 0, 0
        if #receipts[i + 1] >= 6 then
            high, low = struct.unpack('>I2I4', receipts[i + 1])
        end
        if now - (high * 4294967296 + low) > DAY then
            redis.call('HDEL', queue.receipts, receipts[i])
        end
    end
    -- A key of another type is no reason to claim nothing.
    local letters, contents = redis.pcall('ZCARD', queue.dead), redis.pcall('HLEN', queue.dead_messages)
    return known < held or type(letters) == 'number' and type(contents) == 'number' and letters ~= contents
end
