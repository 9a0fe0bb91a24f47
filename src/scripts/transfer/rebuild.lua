-- Takes all due entries out of the ordered list before they are moved. A part of transfer.lua.
-- Provides  REBUILD, WHOLE, WHOLE_BYTES, is_to_rebuild, is_readable, mark, unmark, take_due_out
-- Uses      a search, see transfer/find.lua; cut_front of transfer/take_out.lua, spent of parts/clock.lua,
--           now of parts/now.lua
-- Redisson and redelay deliver what the timeout set has, so an overdue entry may be missing in the list. What
-- is only in the list stays there. Others change the queue between two calls:
--   an offer, a return        its entry is in the list, and may be overdue by the clock of its client: the
--                             calls that move read the whole list first
--   a transfer of Redisson    moves the first due entries, which the list need not have
--   a poll, a cancel          takes its entry from both, so that some elements of the list may be skipped:
--                             the same
--   a reschedule              lists its entry again: see parts/list_again.lua
--   clear, delete             nothing is left
local REBUILD = 2 ^ 40 -- cursors from here on
local BULK = 10000 -- due entries in the list from which on it is rebuilt
local MOST_KEPT, KEPT_BYTES = 20000, 8 * 2 ^ 20 -- not due when a rebuild begins, at most
local MUCH, MUCH_BYTES = 2 * MOST_KEPT, 2 * KEPT_BYTES -- with what others offer meanwhile: then a rebuild is given up
-- and while each call reads the whole list: of 250,000 elements, in 100 ms or so; to look for each entry by
-- itself would take hours
local WHOLE, WHOLE_BYTES = 250000, 5 * KEPT_BYTES
local LEAST_READ = 8000 -- elements that a call reads whatever the clock says
local MARKED_MS = 600000 -- if the client dies, its mark stays so long
local LENGTHS = 100 -- entries that are not due whose lengths are measured

-- Whether the pending entries that are not due have too many bytes to be kept, estimated from some of them.
local function are_long(others, due_count)
    local size, measured = 0, math.min(others, LENGTHS)
    for i = 0, measured - 1 do
        local rank = due_count + math.floor(i * others / measured)
        size = size + #(redis.call('ZRANGE', KEYS.timeout_set, rank, rank)[1] or '')
        if size * others > KEPT_BYTES * measured then
            return true
        end
    end
    return false
end

-- Whether the list is to be rebuilt: if many of its entries are due, and it has few others. A rebuild that is
-- given up leaves due entries that are not listed, each of which costs an LREM.
local function is_to_rebuild(length, due_count)
    if due_count < BULK then
        return false
    end
    local others = redis.call('ZCOUNT', KEYS.timeout_set, string.format('(%.3f', now / 1000), '+inf')
    return math.max(others, length - due_count) <= MOST_KEPT and length - others >= BULK and not are_long(others, due_count)
end

-- Whether each call is to read the whole list: many entries are due, and it is short, judged by what was read
-- of it. If it was rebuilt, and the cursor is lost, due entries are missing in it: then it may be as long as
-- after that.
local function is_readable(search, due_count)
    local ttl = redis.pcall('PTTL', KEYS.rebuild)
    local is_rebuilt = type(ttl) == 'number' and ttl > 0
    local most, most_bytes = is_rebuilt and WHOLE or MUCH, is_rebuilt and WHOLE_BYTES or MUCH_BYTES
    return (is_rebuilt or due_count >= BULK) and search.length <= most and search.length * search.read_bytes <= most_bytes * search.read
end

-- Says to those that compare the list with the set that due entries may be missing. Returns false if that is
-- not permitted.
local function mark()
    redis.call('LRANGE', KEYS.ordered_list, 0, 0)
    return not redis.pcall('ZMSCORE', KEYS.timeout_set, '').err
        and not redis.pcall('SET', KEYS.rebuild, string.format('%.0f', now / 1000), 'PX', MARKED_MS).err
end

local function unmark()
    redis.pcall('DEL', KEYS.rebuild)
end

-- Takes out what is due from a position on, until `time` is up, and pushes the elements before it again.
-- Returns the position where it goes on, and why: the 'end' of the list; 'time'; or 'much' of it is not due.
local function take_due_out(search, from, time)
    local taken, kept, kept_bytes = 0, {}, 0
    local at, ended = 0, nil
    local function keep(element)
        kept[#kept + 1] = element
        kept_bytes = kept_bytes + #element
    end
    local function is_much()
        return #kept > MUCH or kept_bytes > MUCH_BYTES
    end

    search.read, search.read_bytes, search.chunk_size = 0, 0, 1
    -- Nothing here was due. To ask for the scores would take four times as long.
    while at < from and not is_much() do
        local chunk = read_chunk(search, at, math.min(search.chunk_size, from - at))
        for i = 1, #chunk do
            keep(chunk[i])
        end
        at = #chunk > 0 and at + #chunk or from
    end
    search.read, search.read_bytes = 0, 0
    repeat
        local chunk = read_chunk(search, at, search.chunk_size)
        local scores = #chunk > 0 and redis.call('ZMSCORE', KEYS.timeout_set, unpack(chunk))
        for i = 1, #chunk do
            if scores[i] and tonumber(scores[i]) <= now / 1000 then
                taken = taken + 1
            else
                keep(chunk[i])
            end
        end
        at = at + #chunk
        ended = #chunk == 0 and 'end' or is_much() and 'much'
            or is_late(search, spent() + #kept, time, LEAST_READ) and 'time'
    until ended
    if taken > 0 then
        cut_front(at, kept)
    end
    return at - taken, ended
end
