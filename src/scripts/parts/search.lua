-- Searches lists of any length, a part in each call. A part of every script that looks for payloads.
-- Provides  CHUNK, search, are_far, remove_at
local CHUNK = 1000 -- elements per LRANGE, and per unpack, which fails at 8,000
local SEARCHED = 10000 -- elements that one call searches
local SEARCHED_BYTES = 4194304 -- and their bytes, unless they are longer than those before

-- LSET walks to each element from the nearer end of the list. It passes this many elements in about 20 ms. A
-- call marks at least FEW, because the scan that follows takes as long as some hundred walks.
local WALKED, FEW = 4e8, 500

-- Shows the elements to `look` with their positions, and their distances from the nearer end, from one on
-- towards the head, until it returns true: what is taken or offered meanwhile moves none of the others past
-- the next call. Returns where that is to go on, or -1 at the head: a little earlier, for what is put in
-- front.
local function search(at, look)
    local length = redis.call('LLEN', KEYS.list)
    if at < 0 or at >= length then
        at = length - 1
    end
    -- Each LRANGE walks from the nearer end of the list.
    local searched, bytes, count, longest = 0, SEARCHED_BYTES, 4, 1
    while at >= 0 and searched < SEARCHED and bytes > 0 do
        count = math.min(count, SEARCHED - searched, math.max(1, math.floor(bytes / longest)))
        local first = math.max(0, at + 1 - count)
        local elements = redis.call('LRANGE', KEYS.list, first, at)
        for i = #elements, 1, -1 do
            bytes, longest, searched = bytes - #elements[i], math.max(longest, #elements[i]), searched + 1
            local position = first + i - 1
            if look(elements[i], position, math.min(position, length - position)) then
                return first + i - 2 < 0 and -1 or first + i - 2 + math.floor(math.min(CHUNK, searched / 2))
            end
        end
        at = first - 1
        count = math.min(8 * count, 256)
    end
    return at < 0 and -1 or at + math.floor(math.min(CHUNK, searched / 2))
end

-- Whether marking this many elements at this distance takes longer than that.
local function are_far(count, distance)
    return count >= FEW and count * distance > WALKED
end

-- Removes the elements at these positions. No element is equal to the tombstone. The script has ensured that
-- LREM is permitted, and that LSET is.
local function remove_at(positions, tombstone)
    -- Each of them is set to the tombstone; then one pass from the nearer end removes them all.
    for _, position in ipairs(positions) do
        redis.call('LSET', KEYS.list, position, tombstone)
    end
    local is_near_tail = 2 * positions[#positions] > redis.call('LLEN', KEYS.list)
    redis.call('LREM', KEYS.list, is_near_tail and -#positions or #positions, tombstone)
end
