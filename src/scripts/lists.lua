-- Work on lists in chunks: in front of every script that removes many elements of one.
local CHUNK = 1000 -- elements per LRANGE, and per unpack, which fails at 8,000

-- Removes the elements at these positions, which count from 0. `same` is one of them.
local function remove_at(list, positions, same)
    -- All of them become equal to one, and then go in one pass.
    for _, position in ipairs(positions) do
        redis.call('LSET', list, position, same)
    end
    if #positions > 0 then
        redis.call('LREM', list, #positions, same)
    end
end
