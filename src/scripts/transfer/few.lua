-- Moves few due entries without a search of the ordered list. A part of transfer.lua.
-- Provides  MOST_OF_FEW, SHORT_WALK, move_few
-- Uses      payload_of of parts/entry.lua, READ_BYTES of transfer/find.lua, take_out_one of transfer/take_out.lua
local MOST_OF_FEW = 8 -- entries
local SHORT_WALK = 20000 -- elements of the list that an LREM for each of several entries passes, at most

-- Moves all of these entries, which are the first of the timeout set. `length` is that of the list. Returns false if nothing
-- was written, because one of them is malformed, or they are too long to be moved without a look at the clock; or the error
-- of the server, if it was undone.
local function move_few(due, length)
    local payloads, size = {}, 0
    for n, entry in ipairs(due) do
        payloads[n] = payload_of(entry)
        size = size + #entry
        if not payloads[n] or n > 1 and size > READ_BYTES then
            return false
        end
    end
    -- The first write, on an absent key. It needs no memory, and from then on no command is refused for lack of it. It shows
    -- that LREM is permitted, which the rest relies on.
    redis.call('LREM', KEYS.scratch, 1, '')
    redis.call('RPUSH', KEYS.target, unpack(payloads))
    local removed = redis.pcall('ZREMRANGEBYRANK', KEYS.timeout_set, 0, #due - 1)
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
