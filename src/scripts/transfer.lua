-- Moves the payloads of due entries to the target list, earliest due first.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 target list   4 quarantine list
-- ARGV   1 most entries to move   2 most microseconds to take (one step is always made)
-- Reply  {moved, quarantined, score of the next head or false, the server's clock in microseconds}
-- Clock  the server's (TIME)
-- Cost   one pass over the ordered list per step, at most
-- Each step reads and checks all its entries before its first write: Redis keeps what was written before an error.
local function micros()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- Since Redis 7.2 and in Valkey, TIME stands still inside a script; those have os.clock instead.
local has_clock, cpu_clock = pcall(function() return os.clock end)
local function stopwatch()
    return has_clock and cpu_clock() * 1000000 or micros()
end

-- One step: looks at up to `limit` due entries. Returns how many it looked at, moved and set aside.
local function step(now, limit)
    local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now / 1000), 'LIMIT', 0, limit)
    if #due == 0 then
        return 0, 0, 0
    end
    local payloads, malformed = {}, {}
    for _, entry in ipairs(due) do
        local payload = payload_of(entry)
        if payload then
            payloads[#payloads + 1] = payload
        else
            malformed[#malformed + 1] = redis.call('ZSCORE', KEYS[1], entry)
            malformed[#malformed + 1] = entry
        end
    end
    for i = 2, 4 do
        redis.call('LLEN', KEYS[i]) -- the type of every list that is written to
    end
    push(KEYS[3], payloads)
    push(KEYS[4], malformed)
    remove_entries(KEYS[1], KEYS[2], due)
    return #due, #payloads, #malformed / 2
end

local most, budget = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, started = micros(), stopwatch()
-- The longer the list, the dearer a pass over it, and the more entries should share one.
local limit = math.max(100, math.min(5000, math.floor(redis.call('LLEN', KEYS[2]) / 100)))
local moved, quarantined = 0, 0
repeat
    local asked = math.min(limit, most - moved - quarantined)
    local looked_at, good, bad = step(now, asked)
    moved, quarantined = moved + good, quarantined + bad
until looked_at < asked or moved + quarantined >= most or stopwatch() - started >= budget

local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {moved, quarantined, head[2] or false, now}
