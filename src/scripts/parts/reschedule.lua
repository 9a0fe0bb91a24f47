-- Gives a pending entry another due time. A part of the scripts that do so.
-- Provides  new_due, reschedule

-- The server's clock, epoch ms, rounded up; and what is due `ms` after `base`, epoch ms, or after that.
local function new_due(base, ms)
    local time = redis.call('TIME')
    local now = math.ceil(time[1] * 1000 + time[2] / 1000)
    return now, (tonumber(base) or now) + ms
end

-- Returns the head, if its transfer may have to be started, or false. `was_due` is the score until now.
local function reschedule(entry, was_due, now, due)
    local score = string.format('%.0f', due)
    redis.call('ZADD', KEYS.timeout_set, 'XX', score, entry)
    list_again(entry, was_due, now)
    -- What is done may not fail any more.
    local head = redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')
    if head.err or head[1] == entry then
        -- Redisson sets its timer to whatever is announced, later times too, so only a head is announced.
        redis.pcall('PUBLISH', KEYS.channel, score)
        return score
    end
    return tonumber(head[2]) <= now and head[2]
end
