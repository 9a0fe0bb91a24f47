-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list   5 channel
-- ARGV   1 most entries to move   2 microseconds after which it ends (something is always done)   3 who moves
--        4 the cursor of the mover's last reply, or 0
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds, cursor}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and one pass over the ordered list, unless the entries are its first, or few
-- It looks for the due entries in the list, takes out of it what it finds, moves as much of that as there is time for, and
-- brings what is left to the list's front, in the order of the due times: there a later call finds it at once.
-- A pass that takes too long for one call is shared by several. The cursor says how much of the list was looked through; or,
-- if negative, that all of it was, and for how many entries. It is not relied on: a wrong one only costs time.
-- Everything is read and checked before the first write: Redis keeps what was written before an error.
local SLICE = 100 -- entries that are moved before the clock is looked at again
local FEW = 32 -- up to this many entries are cheaper to remove by LREM than by a pass over the list
local DENSE = 4 -- the list's front is written anew where no more than so many others are there for each due entry
local READ, HELD = 2 ^ 20, 2.5 * 2 ^ 20 -- bytes of the list that are read at a time, and of the entries looked for; about
local PART, WIDE, LONG = 50, 4, 3 -- a pass over a long list: see `wide`

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
local function spent()
    return stopwatch() - started
end

local budget = tonumber(ARGV[2])
-- To move one takes two microseconds at least.
local most = math.min(tonumber(ARGV[1]), math.max(SLICE, math.floor(budget / 2)))
local length, ttl = redis.call('LLEN', KEYS[2]), redis.call('PTTL', KEYS[2])
local cursor = math.max(-length, math.min(tonumber(ARGV[4]), length))
-- A pass over a long list looks for a PARTth of it, up to WIDE times as much as is moved at once, and its calls take up to
-- LONG times the budget: most of the time would else go into many short looks.
local wide = math.max(most, math.min(most * WIDE, math.floor(length / PART)))
local limit = wide > most and budget * LONG or budget

local due_count = redis.call('ZCOUNT', KEYS[1], '-inf', string.format('%.3f', now / 1000))
-- What is looked for: the first due entries, the number of each, about how long they are, and how many elements of that
-- length are read at a time.
local due, number, size, chunk_size = {}, {}, nil, nil

local function read_due(count)
    local function read(to)
        for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], #due, to - 1)) do
            due[#due + 1] = entry
            number[entry] = #due
        end
    end
    count = math.min(count, due_count)
    if not size then
        read(math.min(count, SLICE))
        size = 0
        for _, entry in ipairs(due) do
            size = size + #entry / #due
        end
        chunk_size = math.max(1, math.min(CHUNK, math.floor(READ / size)))
    end
    count = math.min(count, math.floor(HELD / size))
    if #due < count then
        read(count)
    end
end

-- Where those that were found are in the list, counted from 0, by their numbers; these, in the list's order; and what else
-- is at the list's front, if that is known.
local place, found, others = {}, {}, nil

-- Looks for them in the next elements; returns the place behind these, or nil at the list's end.
local function look_through(at, count)
    local chunk = redis.call('LRANGE', KEYS[2], at, at + count - 1)
    for i = 1, #chunk do
        local n = number[chunk[i]]
        if n and not place[n] then
            place[n] = at + i - 1
            found[#found + 1] = n
        elseif others then
            others[#others + 1] = chunk[i]
        end
    end
    return #chunk > 0 and at + #chunk or nil
end

-- Looks at the front, as long as due entries are dense there. Returns where that ended, and why: 'all' were found, or all but
-- a 'few'; the 'end' of the list; they became 'sparse'; or the 'time'.
local function look_at_front(time)
    place, found, others = {}, {}, {}
    local at = 0
    while true do
        -- Entries offered in the order of their due times are the list's first.
        local in_order = #others == 0
        local behind = look_through(at, in_order and math.min(chunk_size, #due - #found) or chunk_size)
        at = behind or at
        local is_sparse = #others > #found * DENSE + CHUNK
        if #found == #due then
            return at, 'all'
        elseif not behind then
            return at, 'end'
        elseif (in_order and #others > 0 or is_sparse) and #due - #found <= FEW then
            return at, 'few'
        elseif is_sparse then
            return at, 'sparse'
        elseif spent() + #others / 2 >= time then
            return at, 'time'
        end
    end
end

-- Looks at what comes then. Returns where that ended, and why: 'all', 'end' or 'time'.
local function look_on(at)
    place, found, others = {}, {}, nil
    while true do
        local behind = look_through(at, chunk_size)
        at = behind or at
        -- To set an element, and to remove what is equal, the server walks from the nearer end, 8 KB at a step.
        local distance = math.min(at, length - at)
        local to_take_out = #found * (2 + distance * math.min(1, size / 8192) / 200) + distance / 50
        if #found == #due then
            return at, 'all'
        elseif not behind then
            return at, 'end'
        elseif spent() + to_take_out >= limit * 0.8 then
            return at, 'time'
        end
    end
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

-- Moves entries until time is up. Those that were not found are `absent` from the list, or `searched` for one by one, or
-- else it ends there. Returns how many are gone.
local function move(missing)
    local last, count = 0, math.min(#due, most)
    while last < count and (missing or place[last + 1]) do
        local first, payloads, malformed = last + 1, {}, {}
        -- What has to be searched for is moved by itself, for that takes long.
        repeat
            last = last + 1
            local goes_on = missing == 'absent' or place[last] and place[last + 1]
        until last == count or last == first + math.min(SLICE, chunk_size) - 1 or not goes_on
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
        if spent() >= budget then
            break
        end
    end
    return last
end

-- Brings what was found and is not gone to the list's front.
local function bring_to_front(gone)
    local left = {}
    for n = #due, gone + 1, -1 do
        if place[n] then
            left[#left + 1] = due[n]
        end
    end
    push_all(left)
    if ttl > 0 then
        -- The list may have been empty in between.
        redis.call('PEXPIRE', KEYS[2], ttl)
    end
end

local function move_what_was_found(at, missing)
    take_out(at)
    local gone = move(missing)
    bring_to_front(gone)
    return gone
end

-- Goes on with a pass. This and the next two return the cursor.
local function go_on(from)
    read_due(wide)
    local at, ended = look_on(from)
    local gone = move_what_was_found(at, from == 0 and ended == 'end' and 'absent' or nil)
    if ended == 'time' then
        return at - gone
    end
    return ended == 'end' and from > 0 and gone - #due or 0
end

local function begin()
    read_due(most)
    local at, ended = look_at_front(budget / 2)
    if ended == 'sparse' then
        return go_on(0)
    end
    local ahead = 0
    while place[ahead + 1] do
        ahead = ahead + 1
    end
    local gone = move_what_was_found(at, ended == 'few' and 'searched' or ended == 'end' and 'absent' or nil)
    -- Unless most of what was found are the first ones, these are farther behind.
    return ended == 'time' and (gone == 0 or ahead * 2 < #found) and at - gone or 0
end

-- Moves what a pass has brought to the front. What is not there it has not found.
local function fetch()
    read_due(most)
    local at, ended = look_at_front(limit)
    if ended ~= 'all' and #found * 2 < #due then
        -- Others have moved it, or it is not in the list at all: a few, and then anew.
        for n = #due, FEW + 1, -1 do
            due[n] = nil
        end
        place, found = {}, {}
        move('searched')
        return 0
    end
    return math.min(0, cursor + move_what_was_found(at, 'searched'))
end

if due_count > 0 then
    redis.call('LLEN', KEYS[3]) -- the types; those of the others are known by now
    redis.call('LLEN', KEYS[4])
    cursor = cursor < 0 and fetch() or cursor > 0 and go_on(cursor) or begin()
end

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if due_count > 0 then
    -- So that the others need not look. A user without the right to publish has moved all the same.
    redis.pcall('PUBLISH', KEYS[5], ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
return {moved, quarantined, head or false, now, due_count > 0 and cursor or 0}
