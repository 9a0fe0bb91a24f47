-- Finds due entries in the ordered list. A part of transfer.lua.
-- Provides  CHUNK, FEW, WALK, READ_BYTES, DUE_BYTES, walks, new_search, read_due, read_chunk, is_late,
--           time_to_set, search_front, search_on, search_tail
-- Uses      spent of parts/clock.lua
-- A search is a table:
--   length              the length of the list before the call
--   due_count           how many entries are due
--   due                 the entries that are looked for: the first ones of the timeout set, in its order
--   index               entry -> its index in `due`
--   entry_size          mean length of these entries in bytes, judged by the first SAMPLE of them
--   chunk_size          elements to read by the next LRANGE, judged by those that the last one has read
--   read, read_bytes    how many elements the search has read, and their bytes
--   position            index -> position in the list, counted from 0; only of those that were found
--   found               the indexes of those that were found, in the order of the list
--   not_due             every other element that was read, in the order of the list: those that are not due,
--                       and the few that are due but not looked for, or are there twice. nil where the search
--                       does not keep them
local CHUNK = 1000 -- elements per LRANGE, and per unpack, which fails at 8,000
local FEW = 32 -- up to this many entries are cheaper to remove by one LREM each than by a pass over the list
local WALK = 250000 -- elements of the list that the LREMs of a call pass, about, if it has no time for more
local DENSE = 4 -- the list's front is rewritten only if it has no more than this many other elements for each due entry
local SAMPLE = 100 -- entries whose lengths are measured
local READ_BYTES = 2 ^ 20 -- of the list, read at a time, about
local DUE_BYTES = 2.5 * 2 ^ 20 -- of the entries that are looked for, about
local FIRST_CHUNK = 10 -- elements that show how long the next ones may be

-- How many LREMs of a list of this length take little time.
local function walks(length)
    return math.min(FEW, math.floor(WALK / math.max(1, length)))
end

local function new_search(length, due_count)
    return {length = length, due_count = due_count, due = {}, index = {}}
end

-- Reads what to look for: this many due entries, unless there are fewer or they are too long. A second call
-- reads more of them.
local function read_due(search, count)
    local due, index = search.due, search.index
    local function read(to)
        local known = #due
        for i, entry in ipairs(redis.call('ZRANGE', KEYS.timeout_set, known, to - 1)) do
            due[known + i] = entry
            index[entry] = known + i
        end
    end
    count = math.min(count, search.due_count)
    if not search.entry_size then
        -- The first one says how many more may be read.
        read(1)
        read(math.max(1, math.min(count, SAMPLE, math.floor(DUE_BYTES / #due[1]))))
        local size = 0
        for _, entry in ipairs(due) do
            size = size + #entry / #due
        end
        search.entry_size = size
        search.chunk_size = FIRST_CHUNK
    end
    count = math.min(count, math.floor(DUE_BYTES / search.entry_size))
    if #due < count then
        read(count)
    end
end

-- Reads the next elements of the list, and judges by them how many to read the next time.
local function read_chunk(search, at, count)
    local chunk, size = redis.call('LRANGE', KEYS.ordered_list, at, at + count - 1), 0
    for i = 1, #chunk do
        size = size + #chunk[i]
    end
    if #chunk > 0 then
        local fitting = math.floor(READ_BYTES * #chunk / (size + 1))
        search.chunk_size = math.max(1, math.min(CHUNK, FIRST_CHUNK * count, fitting))
        search.read, search.read_bytes = search.read + #chunk, search.read_bytes + size
    end
    return chunk
end

-- Searches the next elements. Returns the position behind them, or nil at the end of the list.
local function search_chunk(search, at, count)
    local index, position, found, not_due = search.index, search.position, search.found, search.not_due
    local chunk = read_chunk(search, at, count)
    for i = 1, #chunk do
        local n = index[chunk[i]]
        if n and not position[n] then
            position[n] = at + i - 1
            found[#found + 1] = n
        elseif not_due then
            not_due[#not_due + 1] = chunk[i]
        end
    end
    return #chunk > 0 and at + #chunk or nil
end

-- Whether a search that has taken this time, in microseconds, must end. It reads `least` elements, or their
-- bytes, even if the time is up: a server that shares its processor may spend all of it waiting. To read the
-- due entries has taken as long as to read as many elements of the list.
local function is_late(search, micros, time, least, least_bytes)
    return micros >= time and (search.read >= least or search.read_bytes >= (least_bytes or READ_BYTES))
end

-- About how many microseconds it takes to set one element at this position: the server walks from the nearer
-- end, 8 KB at a step.
local function time_to_set(search, at)
    local distance = math.min(at, search.length - at)
    return 2 + distance * math.min(1, search.entry_size / 8192) / 200
end

-- Searches the front of the list for as long as due entries are dense there, and for no more than `time`,
-- which includes taking out what was found. Among the first `dense_up_to` elements they are taken to be
-- dense. Returns the position where it ended, and why: 'all' were found, or all but a 'few'; the 'end' of the
-- list; too 'sparse'; or out of 'time'.
local function search_front(search, time, dense_up_to)
    search.position, search.found, search.not_due, search.read, search.read_bytes = {}, {}, {}, 0, 0
    local due, found, not_due = search.due, search.found, search.not_due
    local at, least = 0, math.max(CHUNK, #due)
    while true do
        -- Entries offered in the order of their due times are the first of the list: then no more is read
        -- than is looked for.
        local in_order = #not_due == 0
        local count = in_order and math.min(search.chunk_size, #due - #found) or search.chunk_size
        local behind = search_chunk(search, at, count)
        at = behind or at
        local may_be_sparse = at >= (dense_up_to or 0) or search.read_bytes > 2 * DUE_BYTES
        local is_sparse = may_be_sparse and #not_due > #found * DENSE + CHUNK
        if #found == #due then
            return at, 'all'
        elseif not behind then
            return at, 'end'
        elseif (in_order and #not_due > 0 or is_sparse) and #due - #found <= FEW then
            return at, 'few'
        elseif is_sparse then
            return at, 'sparse'
        elseif is_late(search, spent() + (#not_due + #found) / 2, time, least) then
            return at, 'time'
        end
    end
end

-- Searches the list from a position on, for no more than `time`, which includes taking out what was found;
-- but for `least` elements or `least_bytes`, if given, whatever the clock says. Returns the position where it
-- ended, and why: 'all', 'end' or 'time'.
local function search_on(search, at, time, least, least_bytes)
    search.position, search.found, search.not_due, search.read, search.read_bytes = {}, {}, nil, 0, 0
    local due, found = search.due, search.found
    least = least or math.max(CHUNK, #due)
    while true do
        local behind = search_chunk(search, at, search.chunk_size)
        at = behind or at
        local to_take_out = #found * time_to_set(search, at) + math.min(at, search.length - at) / 50
        if #found == #due then
            return at, 'all'
        elseif not behind then
            return at, 'end'
        elseif is_late(search, spent() + to_take_out, time * 0.8, least, least_bytes) then
            return at, 'time'
        end
    end
end

-- Searches the end of the list, where entries with short delays are behind many with long ones. Returns
-- whether most were found, and the position where it ended.
local function search_tail(search, time)
    local from = search.length - #search.due * DENSE - CHUNK
    if from <= 0 then
        return false
    end
    local at = search_on(search, from, time)
    return #search.found * 2 > #search.due, at
end
