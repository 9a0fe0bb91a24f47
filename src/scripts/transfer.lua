-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list   5 channel
-- ARGV   1 most entries to look for   2 microseconds after which it ends (something is always done)   3 who moves
--        4 the places that the mover's last reply told, or ''
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds, places or ''}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and one pass over the ordered list, which several calls may share, unless the entries are
--        the list's first, or few
-- Everything is read and checked before the first write: Redis keeps what was written before an error.
local SLICE = 100 -- entries that are moved before the clock is looked at again
local SHARE = 4 -- after a pass that could not be shared, moving has at least this part of the time that it took
local FEW = 12 -- up to this many entries are cheaper to remove by LREM than by a pass over the list
local BLOCK = 64 -- elements that are counted together

local function micros()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- Since Redis 7.2 and in Valkey, TIME stands still inside a script; those have os.clock instead.
local has_clock, cpu_clock = pcall(function() return os.clock end)
local function stopwatch()
    return has_clock and cpu_clock() * 1000000 or micros()
end

local now, started = micros(), stopwatch()
local deadline = started + tonumber(ARGV[2])

-- The next due entries, earliest first.
local function read(most)
    return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now / 1000), 'LIMIT', 0, most)
end

-- Where in the list each due entry is, counted from 0, or -1; and how much of the list was looked through, -1 for all of
-- it. What another call has found may be elsewhere by now.
local place, looked = {}, 0
if ARGV[4] ~= '' then
    place = cmsgpack.unpack(ARGV[4])
    looked = table.remove(place)
end
local sure, complete = {}, false
local due = read(looked < 0 and SLICE or looked > 0 and #place or ARGV[1])

-- Goes on looking for what is not found yet. Returns whether it has come to an end, or may stop for want of time.
local function look(may_stop)
    local number, left, from_head = {}, 0, looked == 0
    for n, entry in ipairs(due) do
        if (place[n] or -1) < 0 then
            place[n], number[entry], left = -1, n, left + 1
        end
    end
    local in_order = from_head
    while left > 0 do
        -- Entries offered in the order of their due times are the list's first.
        local size = in_order and math.min(left, CHUNK) or CHUNK
        local chunk = redis.call('LRANGE', KEYS[2], looked, looked + size - 1)
        for i = 1, #chunk do
            local n = number[chunk[i]]
            if n and place[n] < 0 then
                place[n], sure[n], left = looked + i - 1, true, left - 1
            elseif in_order then
                in_order = false
                if left <= FEW then
                    return true
                end
            end
        end
        if #chunk == 0 then
            break
        end
        looked = looked + #chunk
        if may_stop and left > 0 and stopwatch() >= deadline then
            return false
        end
    end
    looked, complete = -1, from_head
    return true
end

-- Whether it is known how to remove this entry from the list; if not, it has to be searched for.
local function is_found(n)
    local at = place[n]
    return complete or sure[n] or at >= 0 and redis.call('LINDEX', KEYS[2], at) == due[n]
end

-- The places of those after `last`, once those up to it are gone from the list.
local function close_up(last)
    local blocks, before, sum, rest = {}, {}, 0, {}
    for n = 1, last do
        local at = place[n]
        if at >= 0 then
            local block = math.floor(at / BLOCK)
            blocks[block] = blocks[block] or {}
            table.insert(blocks[block], at)
        end
    end
    for block = 0, math.floor(redis.call('LLEN', KEYS[2]) / BLOCK) do
        before[block] = sum
        sum = sum + (blocks[block] and #blocks[block] or 0)
    end
    for n = last + 1, #place do
        local at, gone = place[n], 0
        if at >= 0 then
            local block = math.floor(at / BLOCK)
            gone = before[block]
            for _, other in ipairs(blocks[block] or {}) do
                gone = other < at and gone + 1 or gone
            end
        end
        rest[#rest + 1] = at - gone
    end
    return rest
end

local moved, quarantined, places = 0, 0, ''
if #due > 0 then
    for i = 2, 4 do
        redis.call('LLEN', KEYS[i]) -- the types; that of the timeout set is known by now
    end
    local may_move = looked < 0 or look(true)
    if may_move and looked < 0 and place[1] >= 0 and not is_found(1) then
        -- Others have changed the list in between, and will again: look and move in one call, however long it takes.
        due, place, sure, looked = read(ARGV[1]), {}, {}, 0
        look(false)
        deadline = math.max(deadline, stopwatch() + (stopwatch() - started) / SHARE)
    end
    if not may_move then
        table.insert(place, looked)
        places = cmsgpack.pack(place)
    end

    local last, searched, trimmed, marks, same = 0, 0, 0, 0, nil
    while may_move and last < #due do
        -- Entries whose places are known; or one, by itself, which is searched for. No place is right after that.
        local first, is_known = last + 1, searched == 0 and is_found(last + 1)
        last = first
        if not is_known then
            searched = searched + 1
        end
        while is_known and last < #due and last < first + SLICE - 1 and is_found(last + 1) do
            last = last + 1
        end
        local payloads, malformed = {}, {}
        for n = first, last do
            local payload = payload_of(due[n])
            if payload then
                payloads[#payloads + 1] = payload
            else
                malformed[#malformed + 1] = redis.call('ZSCORE', KEYS[1], due[n])
                malformed[#malformed + 1] = due[n]
            end
        end
        if #payloads > 0 then
            redis.call('RPUSH', KEYS[3], unpack(payloads))
        end
        if #malformed > 0 then
            redis.call('RPUSH', KEYS[4], unpack(malformed))
        end
        redis.call('ZREMRANGEBYRANK', KEYS[1], 0, last - first)
        for n = first, last do
            local at = place[n]
            if not is_known then
                redis.call('LREM', KEYS[2], 1, due[n])
            elseif at == trimmed then
                trimmed = trimmed + 1
            elseif at >= 0 then
                -- What is to go becomes equal to the first of them, and then goes in one pass.
                if marks == 0 then
                    same = due[n]
                else
                    redis.call('LSET', KEYS[2], at, same)
                end
                marks = marks + 1
            end
        end
        moved, quarantined = moved + #payloads, quarantined + #malformed / 2
        may_move = stopwatch() < deadline and searched < FEW
        if may_move and last == #due and last < #place then
            for i, entry in ipairs(read(math.min(SLICE, #place - last))) do
                due[last + i] = entry
            end
        end
    end
    if last > 0 and last < #place and searched == 0 then
        place = close_up(last)
        table.insert(place, -1)
        places = cmsgpack.pack(place)
    end
    if trimmed > 0 then
        redis.call('LTRIM', KEYS[2], trimmed, -1)
    end
    if marks > 0 then
        redis.call('LREM', KEYS[2], marks, same)
    end
end

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if #due > 0 then
    -- So that the others need not look. A user without the right to publish has moved all the same.
    redis.pcall('PUBLISH', KEYS[5], ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
return {moved, quarantined, head or false, now, places}
