-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list   5 channel
-- ARGV   1 most entries to move   2 microseconds after which it ends (some entries are always moved)   3 who moves
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and one pass over the ordered list, unless they are its first, or few
-- Everything is read and checked before the first write: Redis keeps what was written before an error.
local SLICE = 100 -- entries that are moved before the clock is looked at again
local SHARE = 4 -- moving has at least the fourth part of the time that finding took, or most of it were for nothing
local FEW = 12 -- up to this many entries are cheaper to remove by LREM than by a pass over the list

local function micros()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- Since Redis 7.2 and in Valkey, TIME stands still inside a script; those have os.clock instead.
local has_clock, cpu_clock = pcall(function() return os.clock end)
local function stopwatch()
    return has_clock and cpu_clock() * 1000000 or micros()
end

-- Looks for entries in the list. Returns where each is, counted from 0; how many of the list's first elements are all
-- among them; and whether all was looked through.
local function find(entries)
    local number, position, left = {}, {}, #entries
    for i, entry in ipairs(entries) do
        number[entry] = i
    end
    local leading, at = nil, 0
    repeat
        -- Entries offered in the order of their due times are the list's first.
        local chunk = redis.call('LRANGE', KEYS[2], at, at + (leading and CHUNK or math.min(left, CHUNK)) - 1)
        for i = 1, #chunk do
            local n = number[chunk[i]]
            if n and not position[n] then
                position[n] = at + i - 1
                left = left - 1
            elseif not leading then
                leading = at + i - 1
                if left <= FEW then
                    return position, leading, false
                end
            end
        end
        at = at + #chunk
    until left == 0 or #chunk == 0
    return position, leading or at, true
end

local most, budget = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, started = micros(), stopwatch()
local due =
    redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now / 1000), 'LIMIT', 0, most)
local moved, quarantined = 0, 0
if #due > 0 then
    local position, leading, is_complete = find(due)
    for i = 3, 4 do
        redis.call('LLEN', KEYS[i]) -- the type of what is written to; those of the others are known by now
    end
    local found = stopwatch()
    local deadline = math.max(started + budget, found + (found - started) / SHARE)
    local last, marks, same = 0, 0, due[1]
    -- What is to go from the list becomes equal to one of them, and then goes in one pass.
    local function mark(i)
        same = marks == 0 and due[i] or same
        marks = marks + 1
        redis.call('LSET', KEYS[2], position[i], same)
    end
    repeat
        local first, payloads, malformed = last + 1, {}, {}
        last = math.min(last + SLICE, #due)
        for i = first, last do
            local payload = payload_of(due[i])
            if payload then
                payloads[#payloads + 1] = payload
            else
                malformed[#malformed + 1] = redis.call('ZSCORE', KEYS[1], due[i])
                malformed[#malformed + 1] = due[i]
            end
        end
        if #payloads > 0 then
            redis.call('RPUSH', KEYS[3], unpack(payloads))
        end
        if #malformed > 0 then
            redis.call('RPUSH', KEYS[4], unpack(malformed))
        end
        redis.call('ZREMRANGEBYRANK', KEYS[1], 0, last - first)
        for i = first, last do
            if position[i] and position[i] >= leading then
                mark(i)
            end
        end
        moved, quarantined = moved + #payloads, quarantined + #malformed / 2
    until last == #due or stopwatch() >= deadline

    -- The list's first go without a mark, up to one that stays.
    local goes, trimmed = {}, 0
    for i = 1, last do
        if position[i] then
            goes[position[i]] = true
        end
    end
    while trimmed < leading and goes[trimmed] do
        trimmed = trimmed + 1
    end
    for i = 1, last do
        if not position[i] and not is_complete then
            redis.call('LREM', KEYS[2], 1, due[i])
        elseif position[i] and position[i] >= trimmed and position[i] < leading then
            mark(i)
        end
    end
    if marks > 0 then
        redis.call('LREM', KEYS[2], marks, same)
    end
    redis.call('LTRIM', KEYS[2], trimmed, -1)
end

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if #due > 0 then
    -- So that the others need not look. A user without the right to publish has moved all the same.
    redis.pcall('PUBLISH', KEYS[5], ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
return {moved, quarantined, head or false, now}
