-- Stores entries with their due times: all of them or none.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 channel
-- ARGV   1 'after': the times are delays in ms | 'at': they are due times, epoch ms
--          | a number: as 'at', for a retry; if the first try was executed, its entries are due up to this many ms earlier
--        2.. time, entry, time, entry, ...
-- Reply  the server's clock, epoch ms; or false if this is a retry and what the first try stored may have been delivered
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n) per entry
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local base = ARGV[1] == 'after' and now or 0
local earlier = tonumber(ARGV[1])

for i = 2, #ARGV, 2 do
    local due = base + ARGV[i]
    -- Beyond 10^15, Redisson's decoder and Lua's doubles lose digits.
    if due >= 1e15 then
        return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
    end
    if earlier and due - earlier <= now then
        return false
    end
end
-- The first write is to the timeout set and checks its type; the type of the ordered list is checked here, before it.
redis.call('LLEN', KEYS[2])

local added, entries = {}, {}
for i = 2, #ARGV, 2 do
    local due, entry = string.format('%.0f', base + ARGV[i]), ARGV[i + 1]
    -- An entry that is already there was stored by a first try whose reply was lost.
    if redis.call('ZADD', KEYS[1], 'NX', due, entry) == 1 then
        added[entry] = due
        entries[#entries + 1] = entry
    end
end
for i = 1, #entries, 1000 do
    redis.call('RPUSH', KEYS[2], unpack(entries, i, math.min(i + 999, #entries)))
end
-- Redisson sets its timer to whatever is announced, later times too, so only a new head is announced.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if added[head] then
    -- Without permission to publish, the offer still succeeds.
    redis.pcall('PUBLISH', KEYS[3], added[head])
end
return now
