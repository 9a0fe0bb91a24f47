-- Works on lists in chunks. A part of every script that reads or changes a list of any length.
-- Provides  CHUNK, remove_at
local CHUNK = 1000 -- elements per LRANGE, and per unpack, which fails at 8,000

-- Removes the elements at these positions, which count from 0. The tombstone is the first of these elements, so the first
-- write changes nothing. The script has ensured that LREM is permitted.
local function remove_at(list, positions, tombstone)
    -- Each of them is set to the tombstone; then one pass removes them all.
    for _, position in ipairs(positions) do
        redis.call('LSET', list, position, tombstone)
    end
    redis.call('LREM', list, #positions, tombstone)
end
