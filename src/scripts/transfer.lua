-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list   5 channel
-- ARGV   1 most entries to look for   2 microseconds after which it ends (something is always done)   3 who moves
--        4 the cursor of the mover's last reply, or 0
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds, cursor}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and one pass over the ordered list, unless the entries are its first, or few
-- A pass that takes too long for one call only gathers what is due at the list's front, where a later call finds it. The
-- cursor says how much of the list was looked through, or, if negative, how many of the due entries were gathered. It is
-- not relied on: with a wrong one it only takes longer.
-- Everything is read and checked before the first write: Redis keeps what was written before an error.
local SLICE = 100 -- entries that are moved before the clock is looked at again
local FEW = 32 -- up to this many entries are cheaper to remove by LREM than by a pass over the list

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
local due = redis.call(
    'ZRANGEBYSCORE',
    KEYS[1],
    '-inf',
    string.format('%.3f', now / 1000),
    'LIMIT',
    0,
    cursor < 0 and math.min(-cursor, most) or most
)

-- Looks for the due entries in the list, from `at` up to `stop`, or for half of the time: the other half is for what is to
-- be done with them. Returns where they are, counted from 0; which they are, in the order of the list; and what has ended
-- it: that all were `found`, that those that are left are `few`, the `end` of the list, or else the place that was reached.
local function look(at, stop)
    local number, place, found, in_order = {}, {}, {}, at == 0
    for n, entry in ipairs(due) do
        number[entry] = n
    end
    local deadline = stop == math.huge and math.max(started + budget / 2, stopwatch() + budget / 4) or math.huge
    while at < stop do
        -- Entries offered in the order of their due times are the list's first.
        local size = in_order and math.min(#due - #found, CHUNK) or CHUNK
        local chunk = redis.call('LRANGE', KEYS[2], at, at + size - 1)
        for i = 1, #chunk do
            local n = number[chunk[i]]
            if n and not place[n] then
                place[n] = at + i - 1
                found[#found + 1] = n
            elseif in_order then
                in_order = false
                if #due - #found <= FEW then
                    return place, found, 'few'
                end
            end
        end
        at = at + #chunk
        if #found == #due then
            return place, found, 'found'
        elseif #chunk == 0 then
            return place, found, 'end'
        elseif stopwatch() >= deadline then
            return place, found, at
        end
    end
    return place, found, at
end

-- Brings entries to the list's front.
local function gather(place, found)
    for i = 1, #found, CHUNK do
        local entries = {}
        for k = i, math.min(i + CHUNK - 1, #found) do
            entries[#entries + 1] = due[found[k]]
        end
        redis.call('LPUSH', KEYS[2], unpack(entries))
    end
    -- Where they were, all become equal to one, and go in one pass; from the tail, for the front is where they are now.
    for k = 2, #found do
        redis.call('LSET', KEYS[2], place[found[k]] + #found, due[found[1]])
    end
    if #found > 0 then
        redis.call('LREM', KEYS[2], -#found, due[found[1]])
    end
end

local moved, quarantined = 0, 0

-- Moves entries until time is up. Those that were not found are `searched` for one by one, or `absent` from the list; or
-- it ends there. Returns how many entries are gone.
local function move(place, missing)
    local last, trimmed, marks, same = 0, 0, 0, nil
    repeat
        local first, payloads, malformed = last + 1, {}, {}
        -- What has to be searched for is moved by itself, for that takes long.
        repeat
            last = last + 1
            local goes_on = missing == 'absent' or place[last] and place[last + 1]
        until last == #due or last == first + SLICE - 1 or not goes_on
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
            if at == trimmed then
                trimmed = trimmed + 1
            elseif at then
                -- What is to go becomes equal to the first of them, and then goes in one pass.
                same, marks = same or due[n], marks + 1
                if marks > 1 then
                    redis.call('LSET', KEYS[2], at, same)
                end
            elseif missing == 'searched' then
                -- It is behind all that were found, so that their places stay right.
                redis.call('LREM', KEYS[2], 1, due[n])
            end
        end
        moved, quarantined = moved + #payloads, quarantined + #malformed / 2
        local goes_on = missing or place[last + 1]
    until last == #due or stopwatch() >= started + budget or not goes_on
    if trimmed > 0 then
        redis.call('LTRIM', KEYS[2], trimmed, -1)
    end
    if marks > 0 then
        redis.call('LREM', KEYS[2], marks, same)
    end
    return last
end

local goes_on_at = 0
if #due > 0 then
    for i = 2, 4 do
        redis.call('LLEN', KEYS[i]) -- the types; that of the timeout set is known by now
    end
    if cursor < 0 then
        local place, found = look(0, #due)
        if #found * 2 >= #due then
            goes_on_at = move(place, 'searched') - #due
        else
            -- Others have moved what was gathered, or it is not in the list at all: a few of what is left, and then anew.
            for n = #due, FEW + 1, -1 do
                due[n] = nil
            end
            move(place, 'searched')
        end
    else
        local place, found, ended = look(cursor, math.huge)
        local ahead = 0
        while place[ahead + 1] do
            ahead = ahead + 1
        end
        if cursor == 0 and type(ended) == 'string' then
            move(place, ended == 'few' and 'searched' or ended == 'end' and 'absent' or nil)
        elseif cursor == 0 and ahead > 0 and ahead * 2 >= #found then
            move(place, nil)
        else
            gather(place, found)
            goes_on_at = type(ended) == 'number' and ended or -#due
        end
    end
end

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if #due > 0 then
    -- So that the others need not look. A user without the right to publish has moved all the same.
    redis.pcall('PUBLISH', KEYS[5], ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
return {moved, quarantined, head or false, now, goes_on_at}
