-- Finds and removes pairs in the quarantine, which holds score, entry, score, entry, ...
-- Provides  find_pair, remove_pair

-- Returns the position of the first such pair's score, counted from 0, or nil if there is none among
-- so many elements; 0 means all.
local function find_pair(score, entry, most)
    -- The first equal entry nearly always has this score. If not, all equal entries are checked.
    for count = 1, 0, -1 do
        for _, at in ipairs(redis.call('LPOS', KEYS.quarantine, entry, 'COUNT', count, 'MAXLEN', most)) do
            -- A score may have the bytes of an entry, but only entries are at odd positions.
            if at % 2 == 1 and redis.call('LINDEX', KEYS.quarantine, at - 1) == score then
                return at - 1
            end
        end
    end
end

local function remove_pair(at)
    -- The tombstone is unlike everything before the pair, so LREM removes exactly the pair.
    local tombstone = 'gone'
    while redis.call('LPOS', KEYS.quarantine, tombstone, 'MAXLEN', at + 2) do
        tombstone = tombstone .. '.'
    end
    redis.call('LSET', KEYS.quarantine, at, tombstone)
    redis.call('LSET', KEYS.quarantine, at + 1, tombstone)
    redis.call('LREM', KEYS.quarantine, 2, tombstone)
end
