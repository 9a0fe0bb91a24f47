-- Removes the ids of jobs that are no longer pending, a part of them. Whoever moved or removed the entries has left them.
-- KEYS   1 timeout set   2 jobs   3 control: where the next call goes on, and when
-- ARGV   1 fields to look at, about
-- Reply  {how many were removed, ms until the next call, or -1 if all have been looked at}
-- Clock  the server's (TIME)
-- Cost   O(1) for each field. The calls of all clients take one hundredth of the server's time
local REST = 30000 -- ms between two passes

local now_ms = math.floor(now / 1000)
local cursor, next_call = unpack(redis.call('HMGET', KEYS[3], 'jobs', 'jobs-at'))
if redis.call('HLEN', KEYS[2]) == 0 then
    redis.call('HDEL', KEYS[3], 'jobs', 'jobs-at')
    return {0, -1}
end
local wait = (tonumber(next_call) or 0) - now_ms
if wait > 0 and wait <= REST then
    return {0, wait > REST / 2 and -1 or wait}
end
-- The server refuses a longer number.
local is_cursor = cursor and #cursor < 20 and string.find(cursor, '^%d+$')
local scanned = redis.call('HSCAN', KEYS[2], is_cursor and cursor or '0', 'COUNT', ARGV[1])
local fields, removed = scanned[2], 0
for first = 1, #fields, 1000 do
    local entries, stale = {}, {}
    for i = first, math.min(first + 998, #fields - 1), 2 do
        entries[#entries + 1] = string.sub(fields[i + 1], 7)
    end
    local scores = redis.call('ZMSCORE', KEYS[1], unpack(entries))
    for n = 1, #entries do
        if not scores[n] then
            stale[#stale + 1] = fields[first + 2 * n - 2]
        end
    end
    if #stale > 0 then
        removed = removed + redis.call('HDEL', KEYS[2], unpack(stale))
    end
end
local is_over = scanned[1] == '0'
-- A hundred times as long as this call took.
wait = is_over and REST or math.ceil(math.max(spent() / 10, 100))
redis.call('HSET', KEYS[3], 'jobs', scanned[1], 'jobs-at', string.format('%.0f', now_ms + wait))
return {removed, is_over and -1 or wait}
