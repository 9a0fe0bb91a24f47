-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list   5 channel
-- ARGV   1 most entries to move   2 microseconds after which it ends (something is always done)   3 who moves
--        4 the cursor of the mover's last reply, or 0
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds, cursor}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and one pass over the ordered list, unless the entries are its first, or few
-- It looks for the due entries in the list, takes out of it what it finds, moves as much of that as there is time for, and
-- brings what is left to the list's front, in the order of the due times: there a later call finds it at once.
-- A pass that takes too long for one call is shared by several. The cursor says how much of the list was looked through, or,
-- if negative, how many entries they have brought to the front. It is not relied on: with a wrong one it only takes longer.
-- Everything is read and checked before the first write: Redis keeps what was written before an error.
local SLICE = 100 -- entries that are moved before the clock is looked at again
local FEW = 32 -- up to this many entries are cheaper to remove by LREM than by a pass over the list
local DENSE = 4 -- to set one element in the middle takes as long as to push so many
local WIDE, PART = 4, 50 -- a pass over a long list looks for this part of it, up to so many times the most to move

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
local most, budget, cursor = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local length = redis.call('LLEN', KEYS[2])
local wide = math.max(most, math.min(most * WIDE, math.floor(length / PART)))

-- What is looked for: the first due entries, and the number of each.
local due, number
-- What was found: where each of them is in the list, counted from 0; their numbers, in the list's order; and what else
-- is at the list's front, unless that is too much.
local place, found, others

local function look_for(count)
    due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now / 1000), 'LIMIT', 0, count)
    number = {}
    for n, entry in ipairs(due) do
        number[entry] = n
    end
end

-- Looks from `at` on: up to `stop`, as long as much is found there, or for half of the time. The other half is for what is to
-- be done; in a list so long that this would be very many looks, it takes the whole time. Returns the place that was reached,
-- and what ended it: that 'all' was found, that 'few' are left, the 'end' of the list, or the 'limit'.
local function look(at, stop)
    place, found, others = {}, {}, at == 0 and {} or nil
    local share = wide > most and budget or budget / 4
    local deadline = stop == math.huge and math.max(started + budget / 2, stopwatch() + share) or math.huge
    while at < stop do
        -- Entries offered in the order of their due times are the list's first.
        local in_order = others and #others == 0
        local size = in_order and math.min(#due - #found, CHUNK) or CHUNK
        local chunk = redis.call('LRANGE', KEYS[2], at, math.min(at + size, stop) - 1)
        for i = 1, #chunk do
            local n = number[chunk[i]]
            if n and not place[n] then
                place[n] = at + i - 1
                found[#found + 1] = n
            elseif others then
                others[#others + 1] = chunk[i]
            end
        end
        at = at + #chunk
        if #found == #due then
            return at, 'all'
        elseif #chunk == 0 then
            return at, 'end'
        elseif in_order and #others > 0 and #due - #found <= FEW then
            return at, 'few'
        elseif stopwatch() >= deadline then
            return at, 'limit'
        elseif others and #others > #found * DENSE + CHUNK then
            others = nil
            stop = stop == math.huge and stop or at
        end
    end
    return at, 'limit'
end

-- Whether the first ones are.
local function are_found(count)
    for n = 1, count do
        if not place[n] then
            return false
        end
    end
    return true
end

local function push_all(elements)
    for i = 1, #elements, CHUNK do
        redis.call('LPUSH', KEYS[2], unpack(elements, i, math.min(i + CHUNK - 1, #elements)))
    end
end

-- Takes what was found out of the list, which was looked through up to `at`.
local function take_out(at)
    if #found == 0 then
        return
    end
    local same, first, last = due[found[1]], place[found[1]], place[found[#found]]
    -- Changes nothing, but is refused where there is no memory. The commands that take out are not, and what they have taken
    -- out could not be pushed.
    redis.call('LSET', KEYS[2], first, same)
    if others then
        local reversed = {}
        for i = #others, 1, -1 do
            reversed[#reversed + 1] = others[i]
        end
        redis.call('LTRIM', KEYS[2], at, -1)
        push_all(reversed)
    else
        -- All become equal to the first of them, and go in one pass from the nearer end.
        for k = 2, #found do
            redis.call('LSET', KEYS[2], place[found[k]], same)
        end
        redis.call('LREM', KEYS[2], last < length - first and #found or -#found, same)
    end
end

local moved, quarantined = 0, 0

-- Moves entries until time is up, or as far as they were found. Those that were not are `absent` from the list, or are
-- `searched` for one by one. Returns how many are gone.
local function move(missing)
    local last, count = 0, math.min(#due, most)
    while last < count and (missing or place[last + 1]) do
        local first, payloads, malformed = last + 1, {}, {}
        -- What has to be searched for is moved by itself, for that takes long.
        repeat
            last = last + 1
            local goes_on = missing == 'absent' or place[last] and place[last + 1]
        until last == count or last == first + SLICE - 1 or not goes_on
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
        if missing == 'searched' and not place[first] then
            redis.call('LREM', KEYS[2], 1, due[first])
        end
        moved, quarantined = moved + #payloads, quarantined + #malformed / 2
        if stopwatch() >= started + budget then
            break
        end
    end
    return last
end

-- Brings what was found to the list's front, but for the first ones, which are gone.
local function bring_to_front(gone)
    local left = {}
    for n = #due, gone + 1, -1 do
        if place[n] then
            left[#left + 1] = due[n]
        end
    end
    push_all(left)
end

look_for(cursor == 0 and most or cursor > 0 and wide or math.min(-cursor, wide))
local next_cursor = 0
if #due > 0 then
    redis.call('LLEN', KEYS[3]) -- the types; those of the others are known by now
    redis.call('LLEN', KEYS[4])
    local at, ended, is_front, missing
    if cursor < 0 then
        at, ended = look(0, #due)
        if #found * 2 < #due then
            -- Others have moved what was at the front, or it is not in the list at all: a few, and then anew.
            look_for(FEW)
            at, ended = look(0, FEW)
        end
        missing = 'searched'
    else
        if cursor == 0 and #due == most and most < wide then
            at, ended = look(0, most)
            is_front = ended ~= 'limit' or are_found(FEW)
            if not is_front then
                look_for(wide)
            end
        end
        if not is_front then
            at, ended = look(cursor, math.huge)
        end
        missing = ended == 'few' and 'searched' or cursor == 0 and ended == 'end' and 'absent' or nil
    end
    take_out(at)
    local gone = move(missing)
    bring_to_front(gone)
    if cursor < 0 then
        next_cursor = ended == 'all' and 0 or math.max(gone - #due, -most)
    elseif ended == 'limit' and not is_front then
        next_cursor = at - gone
    elseif ended == 'end' and cursor > 0 then
        next_cursor = gone - #due
    end
end

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if #due > 0 then
    -- So that the others need not look. A user without the right to publish has moved all the same.
    redis.pcall('PUBLISH', KEYS[5], ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
return {moved, quarantined, head or false, now, next_cursor}
