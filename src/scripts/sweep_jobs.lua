-- Removes the ids of jobs that are no longer pending, a part of them. Clients that moved or removed the entries have left them.
-- KEYS   1 timeout set   2 jobs   3 control: where the next call goes on, and when   4 dead letters   5 dead messages: their content
-- ARGV   1 fields to look at, about
-- Reply  {how many were removed, ms until the next call, or -1 if all have been looked at, 1 if the dead letters and their content do
--        not agree, or 0}
-- Clock  the server's (TIME)
-- Cost   O(1) for each field; no more than about 1 MB of them. The calls of all clients take one hundredth of the server's time
-- Redisson moves entries that are due, and seldom removes others. To look for an entry costs more than to read its field, so a pass
-- looks for those that are due; and for all if there are few, or most ids are stale.
local REST = 30000 -- ms between two passes
local FEW = 10000
local MOST = 500 -- entries that are looked for in one command

local now_ms = math.floor(now / 1000)
local cursor, next_call, foreign = unpack(redis.call('HMGET', KEYS.control, 'jobs', 'jobs-at', 'foreign'))
-- Receivers look for that, too, but there may be none. A key of another type is for them to report.
local apart = are_apart(foreign) and 1 or 0
local count = redis.call('HLEN', KEYS.jobs)
if count == 0 then
    redis.call('HDEL', KEYS.control, 'jobs', 'jobs-at')
    return {0, -1, apart}
end
local wait = (tonumber(next_call) or 0) - now_ms
if wait > 0 and wait <= REST then
    return {0, wait > REST / 2 and -1 or wait, apart}
end
-- The server refuses a longer number.
local is_cursor = cursor and #cursor < 20 and string.find(cursor, '^%d+$')
local function read(from, number)
    return redis.call('HSCAN', KEYS.jobs, from, 'COUNT', number)
end
local fields, next = scan(read, is_cursor and cursor or '0', tonumber(ARGV[1]))
local ids, entries, removed = {}, {}, 0

local function look_for_entries()
    local scores, stale = redis.call('ZMSCORE', KEYS.timeout_set, unpack(entries)), {}
    for n, id in ipairs(ids) do
        if not scores[n] then
            stale[#stale + 1] = id
        end
    end
    if #stale > 0 then
        removed = removed + redis.call('HDEL', KEYS.jobs, unpack(stale))
    end
    ids, entries = {}, {}
end

local looks_for_all = count <= FEW or redis.call('ZCARD', KEYS.timeout_set) < count / 2
for n = 1, #fields / 2 do
    local field = fields[2 * n]
    if looks_for_all or #field <= 12 or due_of(field) <= now_ms then
        ids[#ids + 1], entries[#entries + 1] = fields[2 * n - 1], entry_of(field)
    end
    if #ids == MOST or #ids > 0 and 2 * n == #fields then
        look_for_entries()
    end
end
local is_over = next == '0'
-- A hundred times as long as this call took.
wait = is_over and REST or math.ceil(math.max(spent() / 10, 100))
redis.call('HSET', KEYS.control, 'jobs', next, 'jobs-at', string.format('%.0f', now_ms + wait))
return {removed, is_over and -1 or wait, apart}
