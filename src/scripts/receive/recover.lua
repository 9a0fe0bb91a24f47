-- Recovers messages whose receivers are gone. A part of `receive`.
-- Provides  look_at_the_clock, recover, sweep

local DAY = 86400000 -- ms
local LONGEST = 3600000 -- ms: no message waits for longer after a loss
local RECOVERED = 4194304 -- bytes of records that one call takes back, about
local SHORTEST = 50 -- ms: the shortest silence
local CONNECTING = 1500 -- ms: the longest pause between two attempts to connect, and the time that it takes
local LONG_CONNECTING = 6000 -- ms: the same behind an attempt that hangs for 3 s, because its reply was lost in the outage
local OUTAGE = 7500 -- ms: no pause between two calls is that long, with a round trip

-- Whether a lease of this length that ends at `ends` is spared because of this silence. Who was cut off
-- before the lease ended may live, and has had no chance to extend it. A silence that began later says
-- nothing: it may be a pause between two calls.
local function spares(silence, lease, ends)
    local _, length, since = unpack(silence)
    return length > lease / 4 and since < ends
end

-- For how long it spares such a lease: half of it, and the time to connect again. The pauses of those who
-- were silent have grown with the silence.
local function extra_time(length, lease)
    local connecting = length > OUTAGE and LONG_CONNECTING or math.min(CONNECTING, length * 1.25 + 250)
    return math.max(math.ceil(lease / 2), connecting)
end

-- Compares the clock with the last sign of life of any receiver. The caller was last answered when the clock
-- showed `last`, and this call was to come when it shows `expected`; both are 0 if it was never answered.
-- Returns the silences that still matter: when each ended, how long it was, and when it began. The caller has
-- looked at no lease since `last`, so its silence begins no later. What exceeds its own pause is no pause of
-- anybody: it counts for every lease, as if it had begun at 0. Signs of life that follow each other quickly
-- are not all noted, unless there is a lease to be ended: it may be a short one. A receiver calls every fifth
-- of its lease, and with what is not noted, that is still less than a quarter.
local function look_at_the_clock(now, lease, has_ended, seen, known, last, expected)
    seen = tonumber(seen)
    local silences = {}
    for ended, length, since in string.gmatch(known or '', '(%d+):(%d+):?(%d*)') do
        ended, length = tonumber(ended), tonumber(length)
        -- One that ended in the future is from before the clock was set back. No lease is spared by it for
        -- longer.
        if ended <= now and now < ended + extra_time(length, 4 * length) then
            -- Other versions of the program do not know when it began.
            silences[#silences + 1] = {ended, length, tonumber(since) or ended - length}
        end
    end
    if seen and now >= seen and now - seen < (has_ended and SHORTEST or math.min(lease / 25, 1000)) then
        return silences
    end
    local function note(since, counts_from)
        -- No lease is longer than a day, or shorter than 100 ms.
        local length = math.min(now - since, 43200000)
        if length > SHORTEST then
            silences[#silences + 1] = {now, length, counts_from}
        end
    end
    if seen or redis.call('ZCARD', KEYS.leases) > 0 then
        local begun = seen or 0
        note(begun, last > 0 and math.min(begun, last) or begun)
        note(last > 0 and math.max(begun, expected) or now, 0)
    end
    if seen and now < seen - 1000 then
        -- The clock was set back, so leases end too late: see `sweep`.
        redis.call('HSET', KEYS.control, 'back', string.format('%.0f', seen))
        redis.call('HDEL', KEYS.control, 'cursor', 'spared')
    end
    local texts = {}
    for i, silence in ipairs(silences) do
        texts[i] = string.format('%.0f:%.0f:%.0f', unpack(silence))
    end
    redis.call('HSET', KEYS.control, 'seen', string.format('%.0f', now), 'silences', table.concat(texts, ' '))
    return silences
end

-- When a lease of this length that ends at `ends` may be ended. Without a silence, its receiver has extended
-- it while half of it was left, or never will.
local function spared_until(silences, lease, ends)
    local till = 0
    for _, silence in ipairs(silences) do
        if spares(silence, lease, ends) then
            till = math.max(till, silence[1] + extra_time(silence[2], lease))
        end
    end
    return till
end

-- Where to begin to look at leases that have ended, and when to begin with the first one again. An earlier
-- call has noted "since:until:end:member" of the last lease that it spared: it has looked at those up to this
-- one, which no lease joins unless the clock is set back.
local function begin(now, noted)
    local since, again, ends, member = string.match(noted or '', '^(%d+):(%d+):(%d+):(.*)$')
    again = tonumber(again)
    if not again or now < tonumber(since) or now >= again then
        return 0
    end
    if tonumber(redis.call('ZSCORE', KEYS.leases, member)) == tonumber(ends) then
        return redis.call('ZRANK', KEYS.leases, member) + 1, again
    end
    -- It was settled or extended.
    return redis.call('ZCOUNT', KEYS.leases, '-inf', '(' .. ends), again
end

-- Takes messages back whose leases have ended: 100 a call. Returns how many, how many of them are dead
-- letters now, and when to look again at the others: when they may be taken back, and four times until then,
-- so that another silence is no pause of ours. Those that are spared stay where they are, in front of others
-- that are not. Up to a thousand of them are looked at in a call, and the next call looks at those behind
-- them. `spared` is what an earlier call has noted of that.
local function recover(noted, now, silences, spared)
    local first, later = begin(now, spared)
    local taken, dead, bytes, looked, last = 0, 0, 0, 0, nil
    local is_all = false
    while taken < 100 and looked < 1000 and bytes <= RECOVERED and not is_all do
        local page = redis.call('ZRANGE', KEYS.leases, first, first + 99, 'WITHSCORES')
        is_all = #page < 200
        for i = 1, #page, 2 do
            local member, ends = page[i], tonumber(page[i + 1])
            if ends > now then
                is_all = true
                break
            end
            local id = string.sub(member, 1, 16)
            local record = redis.call('HGET', KEYS.messages, id)
            bytes = bytes + #(record or '')
            if bytes > RECOVERED and taken + looked > 0 then
                is_all = false
                break
            end
            local holds = record and is_readable(record) and string.sub(record, 2, 5) == string.sub(member, 17)
            local _, most, lease = policy_of(holds and record or string.rep('\0', 24))
            local till = holds and spared_until(silences, lease, ends) or 0
            if now < till then
                first, looked = first + 1, looked + 1
                last = string.format('%.0f:', ends) .. member
                local again = math.ceil(math.min(till, now + math.max(lease / 2, CONNECTING) / 4))
                later = math.min(later or again, again)
            elseif record and is_newer(record) then
                looked = looked + 1
                redis.call('ZADD', KEYS.leases, 'XX', string.format('%.0f', now + LATER), member)
                noted.newer = noted.newer + 1
            else
                looked = looked + 1
                redis.call('ZREM', KEYS.leases, member)
                noted.gone = noted.gone + (record and 0 or 1)
            end
            if holds and now >= till then
                taken = taken + 1
                local delivery, failed, lost = counts(record)
                lost = lost + 1
                record = changed(record, delivery, failed, lost, stored_policy(record))
                if not end_cancelled(record, id) then
                    local is_over = lost >= most
                    local refused = is_over and bury(id, record, now, 'lost', '')
                    noted.unburied = refused or noted.unburied
                    if is_over and not refused then
                        dead = dead + 1
                    else
                        -- After the first loss, a payload that kills its process is no longer claimed
                        -- together with those beside it.
                        local pause = lost == 1 and 0 or math.random() * math.min(2 ^ math.min(lost - 1, 20) * lease, LONGEST)
                        redis.call('HSET', KEYS.messages, id, record)
                        redis.call('ZADD', KEYS.retries, string.format('%.0f', now + pause), id)
                    end
                end
            end
        end
    end
    if last then
        redis.call('HSET', KEYS.control, 'spared', string.format('%.0f:%.0f:', now, later) .. last)
    elseif spared and not later then
        redis.call('HDEL', KEYS.control, 'spared')
    end
    return taken, dead, is_all and later or now
end

-- Searches for messages that have neither a lease nor a retry, because it was removed by hand or a write was
-- refused: they are due for redelivery at once. There are none if the numbers agree. After the clock was set
-- back, cuts leases that end too late, once. Up to a hundred messages a call. Returns whether other keys do
-- not agree: see agree.lua.
local function sweep(now)
    local cursor, back, foreign, at = unpack(redis.call('HMGET', KEYS.control, 'cursor', 'back', 'foreign', 'receipts'))
    local held = redis.call('ZCARD', KEYS.leases) + redis.call('ZCARD', KEYS.retries)
    local known = redis.call('HLEN', KEYS.messages)
    if back or known ~= held then
        local function read(cursor, count)
            return redis.call('HSCAN', KEYS.messages, cursor, 'COUNT', count)
        end
        local found, next = scan(read, string.match(cursor or '', '^%d+$') or '0', 100)
        for i = 1, #found, 2 do
            local id, record = found[i], found[i + 1]
            local member = id .. string.sub(record, 2, 5)
            local till = redis.call('ZSCORE', KEYS.leases, member)
            if not till then
                -- What is no id of a message was written by another program.
                if #id == 16 and not is_newer(record) and not redis.call('ZSCORE', KEYS.retries, id) then
                    redis.call('ZADD', KEYS.retries, string.format('%.0f', now), id)
                end
            elseif back then
                local _, _, lease = policy_of(record)
                if tonumber(till) > now + lease then
                    redis.call('ZADD', KEYS.leases, 'XX', string.format('%.0f', now + lease), member)
                end
            end
        end
        if next == '0' then
            redis.call('HDEL', KEYS.control, 'back', 'cursor')
        else
            redis.call('HSET', KEYS.control, 'cursor', next)
        end
    end
    -- Receipts of receivers that died a day ago.
    local function receipts_from(cursor, count)
        return redis.call('HSCAN', KEYS.receipts, cursor, 'COUNT', count)
    end
    local receipts, next = scan(receipts_from, string.match(at or '', '^%d+$') or '0', 100)
    for i = 1, #receipts, 2 do
        local receipt = receipts[i + 1]
        local answered = #receipt >= 22 and struct.unpack('>I6', receipt, 17) or 0
        if now - answered > DAY then
            redis.call('HDEL', KEYS.receipts, receipts[i])
        end
    end
    if next ~= '0' then
        redis.call('HSET', KEYS.control, 'receipts', next)
    elseif at then
        redis.call('HDEL', KEYS.control, 'receipts')
    end
    -- A key of another type is no reason to claim nothing.
    return known < held or are_apart(foreign)
end
