-- How many messages the receivers of a queue may claim. A part of `receive`.
-- Provides  Limits
-- In the control hash, which concerns all receivers: 'paused'; the most messages in flight, 'most'; the rate
-- as the µs of one message, 'interval', and how many may come at once, 'burst'. 'next' is the theoretical
-- arrival time of GCRA, epoch µs. After how many ms a receiver looks again whether it may claim, and after
-- how many at the latest.
local Limits = {ASK = 1000, LONGEST = 5000}

-- `known` has the values of these fields. What is no number limits nothing.
function Limits.new(known)
    local function number(text)
        return tonumber(string.match(text or '', '^%d+$') or '')
    end
    return {
        paused = known[1], most = number(known[2]), interval = number(known[3]), burst = number(known[4]),
        next = number(known[5]),
    }
end

function Limits.are_full(limits)
    return limits.most and redis.call('ZCARD', KEYS.leases) >= limits.most
end

-- How many of `most` messages may be claimed, and for how many ms not all of them: -1 if all may.
function Limits.allowed(limits, most, now_us)
    local wait = -1
    if limits.paused then
        return 0, Limits.ASK
    end
    if limits.most then
        local free = math.max(0, limits.most - redis.call('ZCARD', KEYS.leases))
        if free < most then
            most, wait = free, Limits.ASK
        end
    end
    if limits.interval and limits.interval > 0 then
        local interval, burst = limits.interval, math.max(limits.burst or 1, 1)
        -- Never later than after a whole burst: the clock was set back then, or the limit was raised.
        local latest = now_us + burst * interval
        if (limits.next or 0) > latest then
            -- It is kept, or it would be as far ahead in each call.
            redis.pcall('HSET', KEYS.control, 'next', string.format('%.0f', latest))
        end
        limits.next = math.min(math.max(limits.next or 0, now_us), latest)
        local ahead = limits.next - now_us
        local free = math.max(0, math.floor(burst - ahead / interval))
        if free < most then
            wait = math.ceil((ahead + (free + 1 - burst) * interval) / 1000)
            most, wait = free, math.max(1, math.min(wait, Limits.LONGEST))
        end
    end
    return most, wait
end

-- This many were claimed.
function Limits.claimed(limits, count)
    if limits.interval and limits.interval > 0 and count > 0 then
        redis.call('HSET', KEYS.control, 'next', string.format('%.0f', limits.next + count * limits.interval))
    end
end
