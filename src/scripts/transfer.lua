-- Transfers due entries: moves their payloads to the target, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target   4 quarantine
--        5 channel of the transfers   6 scratch   7 jobs
--        8 rebuild: there while due entries may be missing in the ordered list
-- ARGV   1 most entries to move: the client's `transfer_batch`
--        2 time budget in microseconds; every call gets something done   3 id of the client
--        4 the cursor of the client's last reply, or 0
--        5 ms: peers are not told if the next entry is due within them; 0 to tell
-- Reply  {moved, quarantined, head or false, the server's clock in microseconds, cursor, moved runs of
--        schedules}
-- Clock  the server's (TIME)
-- Cost   O(log n) per entry; and a pass over the ordered list, unless the entries are its first, or few. No
--        more than the time budget, or what takes one step longer: of a list that was rebuilt, to read all of
--        it
-- If one entry is due, or few are and the list is short, each of them is removed by an LREM: see
-- transfer/few.lua. So are long entries. Otherwise a call looks for the first due entries in the ordered
-- list, takes out what it finds, moves as many of these as there is time for, and brings the others to the
-- list's front, in the order of their due times, where a later call finds them at once. A pass over the list
-- that takes too long for one call is shared by several. If most entries of a long list are due, the list is
-- rebuilt first, from what is not due: see transfer/rebuild.lua. Only the cursor goes from one call to the
-- next:
--
--   cursor  meaning                what the call does              next cursor
--   ------  ---------------------  ------------------------------  -------------------------------------
--   0       nothing is known;      searches the front, and moves   p, if the time ended and most of what
--           due entries are dense  what it finds                   was found is not due first; else 0
--           at the front
--   0       nothing is known;      searches the end, and moves     0
--           they are sparse there  what it finds
--   0       nothing is known;      begins a pass: searches the     p, if the time ended; else 0
--           they are sparse at     list from its start
--           both ends
--   p > 0   the first p elements   continues the pass from p on    p, if the time ended; -n, at the end
--           were searched                                          of the list; 0, if all were found
--   -n < 0  a pass has ended, and  moves them from the front, and  -n, of those that are left
--           put n due entries to   each that is missing there by
--           the front              an LREM; if they are not in the
--                                  order of their due times, looks
--                                  for all n, and puts them in it
--   -n < 0  most of them are not   moves them, each by an LREM     0; -n, of those that are left, if the list
--           at the front any more                                  has few: a pass would find no more
--   0       due entries are long   moves them, each by an LREM     0
--   0       many are due, and few  moves the first one by an       as the next ones; R, if the LREM took the
--           are not                LREM, and begins to rebuild     time
--                                  the list
--   R + p   the first p elements   takes out what is due from p    R + p, if the time ended; -R, at the end
--           are not due            on                              of the list; p, if too many are not due
--   0       many are due, and the  as the next one                 as the next one
--           list is short
--   -R      the list was rebuilt   reads the whole list, and       -R; p, if it has too many bytes for that;
--                                  moves the first due entries     0, if all were moved
--
-- p does not count what was moved. n also counts due entries that are not in the list at all. R is REBUILD.
-- If a call of a pass can move nothing else, it moves the first due entry by an LREM: the first call, and
-- others if the list is not too long. Nothing relies on the cursor: a wrong one only costs time.
-- Everything is read and checked before the first write, because Redis keeps what was written before an
-- error: see parts/permitted.lua. Few entries are moved first, and moved back if the server refuses the rest.
local PASS_PART, PASS_WIDTH, PASS_TIME = 50, 4, 2.4 -- a pass over a long list: see `wide`
local PORTION = 500 -- entries: see `move_rebuilt`

local budget = tonumber(ARGV[2])
-- To move an entry takes two microseconds at least.
local most = math.min(tonumber(ARGV[1]), math.max(SLICE, math.floor(budget / 2)))
local cursor, rebuilding = tonumber(ARGV[4]), nil
if math.abs(cursor) >= REBUILD then
    rebuilding = cursor > 0 and 'goes on' or 'has ended'
    cursor = cursor > 0 and cursor - REBUILD or 0
end
cursor = math.max(-length, math.min(cursor, length))

-- A pass over a long list looks for one PASS_PARTth of it, but for no more than PASS_WIDTH times as many
-- entries as are moved at once, and its calls take up to PASS_TIME budgets. Otherwise most of the time would
-- be spent on many short searches.
local wide = math.max(most, math.min(most * PASS_WIDTH, math.floor(length / PASS_PART)))
local pass_time = wide > most and budget * PASS_TIME or budget

-- A list that was empty in between has lost its time to live: in this call, or after an earlier one had
-- rebuilt it. Then the timeout set still has it.
local ttl = redis.call('PTTL', KEYS.ordered_list)
if ttl < 0 then
    ttl = redis.call('PTTL', KEYS.timeout_set)
end
local search = new_search(length, due_count)
local gone, quarantined, listed = 0, 0, 0

-- Whether a pass may walk through the list for one entry, and how long that takes.
local may_walk = cursor == 0 or length <= WALK
local walk_time = may_walk and math.min(length / 40, pass_time / 2) or 0

local function move_due(count, time, missing)
    gone, quarantined, listed = move(search, count, time, missing)
    if gone == 0 and count > 0 and may_walk then
        gone, quarantined, listed = move(search, 1, time, 'searched')
    end
    forget(search.due, gone)
end

local function move_found(at, missing)
    take_out(search, at)
    move_due(most, math.max(budget, spent() + budget / 4), missing)
    bring_to_front(search, gone)
end

-- Moves up to this number of the first due entries, each by an LREM.
local function move_each(count)
    for n = #search.due, count + 1, -1 do
        search.due[n] = nil
    end
    search.position, search.found = {}, {}
    move_due(count, budget, 'searched')
end

-- The next ones do the work. Each returns the next cursor.
local function continue_pass(from)
    read_due(search, wide)
    local at, ended = search_on(search, from, pass_time - walk_time)
    move_found(at, from == 0 and ended == 'end' and 'absent' or nil)
    if ended == 'time' then
        return at - gone
    end
    return ended == 'end' and from > 0 and gone - #search.due or 0
end

local function rebuild(from, is_first)
    if not mark() then
        return continue_pass(0)
    end
    -- They may be anywhere in the list, or already out of it.
    local first = math.max(is_first and 1 or 0, walks(length))
    if first > 0 then
        read_due(search, first)
        move_each(first)
        if is_first and spent() >= budget then
            -- Its LREM has passed a long list.
            return REBUILD
        end
    end
    local at, ended = take_due_out(search, from, budget)
    if ended == 'time' then
        return REBUILD + at
    end
    return (ended == 'end' or redis.call('LLEN', KEYS.ordered_list) <= WHOLE) and -REBUILD or at
end

local function move_rebuilt()
    if length > WHOLE or not mark() then
        return continue_pass(0)
    end
    local all_gone, all_quarantined = 0, 0
    local at, ended
    repeat
        -- Nothing is looked for in an empty list: then entries are moved while the processor has them in its
        -- cache.
        local portion = length > 0 and most or math.min(PORTION, most - all_gone)
        search = new_search(length, due_count - all_gone)
        read_due(search, portion)
        at, ended = search_on(search, 0, budget, WHOLE, WHOLE_BYTES)
        move_found(at, ended == 'end' and 'absent' or nil)
        all_gone, all_quarantined = all_gone + gone, all_quarantined + quarantined
    until length > 0 or all_gone == math.min(most, due_count) or spent() >= budget and is_progress(search, all_gone)
    gone, quarantined = all_gone, all_quarantined
    if ended == 'time' then
        -- A pass goes on there. Another call would read the same part again.
        return at - gone
    end
    return gone < due_count and -REBUILD or 0
end

local function begin()
    read_due(search, most)
    if search.entry_size >= LONG_ENTRY then
        move_each(#search.due)
        return 0
    end
    local at, ended = search_front(search, budget / 2)
    local is_sparse = ended == 'sparse' or ended == 'time' and #search.found * DENSE < #search.not_due
    if is_sparse and is_to_rebuild(length, due_count) then
        return rebuild(0, true)
    end
    if ended == 'sparse' then
        local most_found, behind = search_tail(search, budget / 2)
        if most_found then
            move_found(behind, #search.due - #search.found <= FEW and 'searched' or nil)
            return 0
        end
    end
    if is_sparse and is_readable(search, due_count) then
        return move_rebuilt()
    elseif ended == 'sparse' then
        return continue_pass(0)
    end
    local ahead = 0
    while search.position[ahead + 1] do
        ahead = ahead + 1
    end
    move_found(at, ended == 'few' and 'searched' or ended == 'end' and 'absent' or nil)
    -- If most of those that were found are the first ones, the list is nearly in their order, and the next
    -- call begins again. Otherwise the next ones are farther behind, and this was the start of a pass.
    return ended == 'time' and (ahead == 0 or ahead * 2 < #search.found) and at - gone or 0
end

local function move_from_front()
    read_due(search, most)
    local at, ended = search_front(search, pass_time)
    if ended == 'sparse' then
        -- The calls of the pass have put them there one after the other. Once all of them are looked for,
        -- they are in the order of their due times; as many as there is time for, on a slow server.
        read_due(search, math.min(-cursor, math.floor(#search.due * pass_time / (4 * spent()))))
        at, ended = search_front(search, pass_time, math.min(-cursor, PASS_WIDTH * most))
    end
    if ended ~= 'all' and #search.found * 2 < #search.due then
        move_each(most)
        return listed * 2 > gone and 0 or math.min(0, cursor + gone)
    end
    move_found(at, 'searched')
    return math.min(0, cursor + gone)
end

local next_cursor = 0
if due_count > 0 then
    -- The types of these two; those of the other keys were checked by now.
    redis.call('LLEN', KEYS.target)
    redis.call('LLEN', KEYS.quarantine)
    redis.call('ZSCORE', KEYS.timeout_set, '')
    ensure_permitted({'LREM', 'ZREMRANGEBYRANK'}, {'RPUSH', 'LPUSH'})
    if rebuilding == 'goes on' then
        next_cursor = rebuild(cursor)
    elseif rebuilding then
        next_cursor = move_rebuilt()
    elseif cursor < 0 then
        next_cursor = move_from_front()
    elseif cursor > 0 then
        next_cursor = continue_pass(cursor)
    else
        next_cursor = begin()
    end
end
if ttl > 0 then
    redis.pcall('PEXPIRE', KEYS.ordered_list, ttl)
end
if gone == due_count then
    -- No due entry is missing in the list. Another client may have begun to rebuild it.
    unmark()
end

local head = redis.call('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2]
if due_count > 0 then
    announce(head)
end
return {gone - quarantined, quarantined, head or false, now, next_cursor, moved_runs}
