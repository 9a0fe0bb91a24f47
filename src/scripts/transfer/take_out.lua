-- Takes the entries that a search found out of the ordered list, and brings those that stay to its front. A
-- part of transfer.lua.
-- Provides  cut_front, take_out, bring_to_front
-- Uses      a search and CHUNK, see transfer/find.lua

-- Pushes each element to the head of the list: the last one becomes the first.
local function push_to_front(elements)
    for i = 1, #elements, CHUNK do
        redis.call('LPUSH', KEYS.ordered_list, unpack(elements, i, math.min(i + CHUNK - 1, #elements)))
    end
end

-- Cuts off everything in front of a position, and pushes what stays of it again, in its order.
local function cut_front(at, stays)
    local reversed = {}
    for i = #stays, 1, -1 do
        reversed[#reversed + 1] = stays[i]
    end
    redis.call('LTRIM', KEYS.ordered_list, at, -1)
    push_to_front(reversed)
end

-- Takes out everything that was found. The search ended at the position `at`.
local function take_out(search, at)
    local position, found, not_due = search.position, search.found, search.not_due
    if #found == 0 then
        return
    end
    local tombstone, first, last = search.due[found[1]], position[found[1]], position[found[#found]]
    if not_due then
        -- The front was read as a whole.
        cut_front(at, not_due)
    else
        -- Each is set to the tombstone, which is the first of them; then one pass from the nearer end removes
        -- them all. The first LSET changes nothing, but fails without the permission.
        for k = 1, #found do
            redis.call('LSET', KEYS.ordered_list, position[found[k]], tombstone)
        end
        redis.call('LREM', KEYS.ordered_list, last < search.length - first and #found or -#found, tombstone)
    end
end

-- Brings what was taken out to the front of the list, except the first `gone` entries, which are no longer
-- pending.
local function bring_to_front(search, gone)
    local left = {}
    for n = #search.due, gone + 1, -1 do
        if search.position[n] then
            left[#left + 1] = search.due[n]
        end
    end
    push_to_front(left)
end
