-- Recovers messages whose receivers are gone. A part of `receive`.
-- Provides  look_at_the_clock, recover, sweep

-- Compares the clock with the last sign of life of any receiver. Returns when leases may be ended: after half a lease, if
-- all receivers have been silent for that long, because they may live and be about to extend them.
local function look_at_the_clock(queue, now, lease)
    local seen, grace = unpack(redis.call('HMGET', queue.control, 'seen', 'grace'))
    seen, grace = tonumber(seen), tonumber(grace) or 0
    if grace > now + lease then
        -- The clock was set back since.
        grace = 0
    end
    if seen and now >= seen and now - seen < math.min(lease / 12, 1000) then
        return grace
    end
    if not seen or now - seen > lease / 2 then
        grace = now + math.ceil(lease / 2)
        redis.call('HSET', queue.control, 'grace', string.format('%.0f', grace))
    elseif now < seen - 1000 then
        -- The clock was set back, so leases end too late: see `sweep`.
        redis.call('HSET', queue.control, 'back', string.format('%.0f', seen))
    end
    redis.call('HSET', queue.control, 'seen', string.format('%.0f', now))
    return grace
end

-- Takes messages back whose leases have ended: 100 a call. Returns how many, and how many of them are dead letters now.
local function recover(queue, now)
    local taken, dead = 0, 0
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue.leases, '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)) do
        local id = string.sub(member, 1, 16)
        local record = redis.call('HGET', queue.messages, id)
        redis.call('ZREM', queue.leases, member)
        if record and is_readable(record) and string.sub(record, 2, 5) == string.sub(member, 17) then
            taken = taken + 1
            local delivery, failed, lost = counts(record)
            local _, most, lease = policy_of(record)
            lost = lost + 1
            record = header(delivery, failed, lost, string.sub(record, 10, 20), string.sub(record, 21, 28))
                .. payload_in(record)
            if lost >= most then
                dead = dead + 1
                bury(queue, id, record, now, 'lost', '')
            else
                -- A payload that kills its process, and the innocent ones beside it, part ways after the first loss.
                local pause = lost == 1 and 0 or math.random() * 2 ^ (lost - 1) * lease
                redis.call('HSET', queue.messages, id, record)
                redis.call('ZADD', queue.retries, string.format('%.0f', now + pause), id)
            end
        end
    end
    return taken, dead
end

-- Looks at some messages, a hundred or so: one that has neither a lease nor a retry, because somebody removed it or a write
-- was refused, is due for redelivery at once. After the clock was set back, cuts leases that end too late.
local function sweep(queue, now)
    local cursor, back = unpack(redis.call('HMGET', queue.control, 'cursor', 'back'))
    local scanned = redis.call('HSCAN', queue.messages, string.match(cursor or '', '^%d+$') or '0', 'COUNT', 100)
    local day = 86400000
    for i = 1, #scanned[2], 2 do
        local id, record = scanned[2][i], scanned[2][i + 1]
        local member = id .. string.sub(record, 2, 5)
        local till = redis.call('ZSCORE', queue.leases, member)
        if not till then
            if not redis.call('ZSCORE', queue.retries, id) then
                redis.call('ZADD', queue.retries, string.format('%.0f', now), id)
            end
        elseif tonumber(back) and now < back + day then
            local _, _, lease = policy_of(record)
            if tonumber(till) > now + lease then
                redis.call('ZADD', queue.leases, 'XX', string.format('%.0f', now + lease), member)
            end
        end
    end
    if scanned[1] ~= '0' or cursor then
        redis.call('HSET', queue.control, 'cursor', scanned[1])
    end
    -- Receipts of receivers that died a day ago. A token begins with its time.
    local receipts = redis.call('HSCAN', queue.receipts, '0', 'COUNT', 100)[2]
    for i = 1, #receipts, 2 do
        local high, low = 0, 0
        if #receipts[i + 1] >= 6 then
            high, low = struct.unpack('>I2I4', receipts[i + 1])
        end
        if now - (high * 4294967296 + low) > day then
            redis.call('HDEL', queue.receipts, receipts[i])
        end
    end
end
