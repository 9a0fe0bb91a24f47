-- Moves few due entries without a search of the ordered list, as most calls do. A part of transfer.lua.
-- Provides  SHORT_WALK, LONG_ENTRY, take_out_one
-- Uses      what transfer/begin.lua provides; now of parts/now.lua, payload_of of parts/entry.lua, forget and
--           moved_runs of transfer/jobs.lua
local MOST_OF_FEW = 8 -- entries
local FEW_BYTES = 2 ^ 20 -- of these entries, about
local SHORT_WALK = 20000 -- elements of the list that an LREM for each of several entries passes, at most
-- Entries of this many bytes are cheaper to remove by one LREM each than by a pass: the list has a node for
-- each of them, which an LREM passes without reading it, and a pass would look for few at a time.
local LONG_ENTRY = 8192

local LONG_WALK = 1000 -- elements of a list in which it matters from which end an LREM starts
local NEAR_FRONT = 16 -- elements: an entry that was offered in the order of the due times is one of the first
local TAIL_PART = 16 -- the search from the end stops after this part of the list: a sixteenth

-- Takes one entry out of the list, which has about this many elements. Entries with short delays are at the
-- end of a list of many with long ones. Without permission to look there, the LREM starts at the front.
-- Returns how many it has removed.
local function take_out_one(length, entry)
    local function has(...)
        return type(redis.pcall('LPOS', KEYS.ordered_list, entry, ...)) == 'number'
    end
    local from_end = length >= LONG_WALK and not has('MAXLEN', NEAR_FRONT)
        and has('RANK', -1, 'MAXLEN', math.floor(length / TAIL_PART))
    return redis.call('LREM', KEYS.ordered_list, from_end and '-1' or '1', entry)
end

-- Moves all of these entries, which are the first of the timeout set. `length` is that of the list. Returns
-- false if nothing was written, because one of them is malformed, or they are too long to be moved without a
-- look at the clock; or the error of the server, if it was undone.
local function move_few(due, length)
    local payloads, size = {}, 0
    for n, entry in ipairs(due) do
        payloads[n] = payload_of(entry)
        size = size + #entry
        if not payloads[n] or n > 1 and size > FEW_BYTES then
            return false
        end
    end
    -- The first write, on an absent key. It needs no memory, and from then on no command is refused for lack
    -- of it. It shows that LREM is permitted, which the rest relies on.
    redis.call('LREM', KEYS.scratch, '1', '')
    redis.call('RPUSH', KEYS.target, unpack(payloads))
    local removed = redis.pcall('ZREMRANGEBYRANK', KEYS.timeout_set, '0', #due - 1)
    if type(removed) == 'table' then
        for n = #due, 1, -1 do
            redis.call('LREM', KEYS.target, -1, payloads[n])
        end
        return removed
    end
    for _, entry in ipairs(due) do
        take_out_one(length, entry)
    end
    return true
end

local are_few = is_usual and due_count <= MOST_OF_FEW
if are_few and due_count > 1 then
    are_few = due_count * length <= SHORT_WALK and #first[1] < LONG_ENTRY
    first = are_few and redis.call('ZRANGE', KEYS.timeout_set, 0, due_count, 'WITHSCORES')
end
if are_few then
    local head, due = first[2 * due_count + 2], {}
    for n = 1, due_count do
        due[n] = first[2 * n - 1]
    end
    local moved = move_few(due, length)
    if moved == true then
        forget(due, due_count)
        announce(head)
        return {due_count, 0, head or false, now, 0, moved_runs}
    elseif moved then
        return moved
    end
end
