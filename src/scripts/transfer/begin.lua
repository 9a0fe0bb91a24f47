-- The beginning of `transfer`: makes the usual calls, which find few due entries or none. To create the functions for many would take
-- as long as such a call.
-- Provides  length, due_count, announce
-- Uses      now of parts/now.lua, a few constants and move_few of transfer/few.lua, forget and moved_runs of transfer/jobs.lua
local length = redis.call('LLEN', KEYS.ordered_list)
local first, due_count = redis.call('ZRANGE', KEYS.timeout_set, '0', '1', 'WITHSCORES'), 0
if first[4] and tonumber(first[4]) <= now / 1000 then
    due_count = redis.call('ZCOUNT', KEYS.timeout_set, '-inf', string.format('%.3f', now / 1000))
elseif first[2] and tonumber(first[2]) <= now / 1000 then
    due_count = 1
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

-- Whether to read all due entries at once.
local are_few = ARGV[4] == '0' and due_count <= math.min(tonumber(ARGV[1]), MOST_OF_FEW)
if are_few and due_count > 1 then
    are_few = due_count * length <= SHORT_WALK and #first[1] < LONG_ENTRY
    first = are_few and redis.call('ZRANGE', KEYS.timeout_set, 0, due_count, 'WITHSCORES')
end
if are_few then
    local head = first[2 * due_count + 2]
    if due_count == 0 then
        return {0, 0, head or false, now, 0, 0}
    end
    local due = {}
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
