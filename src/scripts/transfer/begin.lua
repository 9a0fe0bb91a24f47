-- The beginning of `transfer`: reads what every call needs, and makes the call that finds nothing due, before
-- the functions for anything else are created.
-- Provides  length, first, due_count, is_usual, announce
-- Uses      now of parts/now.lua
local length = redis.call('LLEN', KEYS.ordered_list)
local first, due_count = redis.call('ZRANGE', KEYS.timeout_set, '0', '1', 'WITHSCORES'), 0
if first[4] and tonumber(first[4]) <= now / 1000 then
    due_count = redis.call('ZCOUNT', KEYS.timeout_set, '-inf', string.format('%.3f', now / 1000))
elseif first[2] and tonumber(first[2]) <= now / 1000 then
    due_count = 1
end
-- Whether nothing is left of an earlier call, and all that is due may be moved at once.
local is_usual = ARGV[4] == '0' and due_count <= tonumber(ARGV[1])
if is_usual and due_count == 0 then
    return {0, 0, first[2] or false, now, 0, 0}
end

-- Other clients hear of it, and need not call. Without permission to publish, the transfer still succeeds.
local quiet = tonumber(ARGV[5])
local function announce(head)
    if quiet > 0 and head and tonumber(head) < now / 1000 + quiet then
        -- The client has told them a moment ago, and will soon do so again.
        return
    end
    redis.pcall('PUBLISH', KEYS.channel, ARGV[3] .. ' ' .. string.format('%.0f', now) .. ' ' .. (head or ''))
end
