-- Returns polled entries to the queue. A part of the scripts that do so.
-- Provides  restore

-- Puts pairs of entry and score or '' in front of the ordered list, in their order, with the due times they
-- had. Returns the head if it is one of them now, else false. The script has ensured that the commands are
-- permitted.
local function restore(pairs)
    local restored = {}
    for i = #pairs - 1, 1, -2 do
        local entry, score = pairs[i], pairs[i + 1]
        if score == '' or redis.call('ZADD', KEYS.timeout_set, 'NX', score, entry) == 1 then
            redis.call('LPUSH', KEYS.ordered_list, entry)
            restored[entry] = score
        end
    end
    local head = redis.call('ZRANGE', KEYS.timeout_set, 0, 0)[1]
    -- Redisson throws if it receives anything but an integer.
    if head and restored[head] and string.match(restored[head], '^%d+$') then
        redis.pcall('PUBLISH', KEYS.channel, restored[head])
    end
    return head and restored[head] or false
end
