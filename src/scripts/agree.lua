-- Lets a sorted set and a hash that have the same ids agree again, a part of them, after somebody has deleted
-- one of the keys, or something in it. What has no content any more is forgotten, and what only has a content
-- is in the set again. Idempotent.
-- KEYS   1 set: ids, sorted   2 hash: id -> content
-- ARGV   1 what they have: 'dead' letters, 'schedules', or 'retries', which need not have all messages
--        2 how many ids of the set were looked at, or -1: all   3 the cursor of a scan of the hash, or '': it has ended
-- Reply  {how many ids were forgotten, how many are in the set again, what 2 and 3 are in the next call}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each of about a hundred ids and a hundred fields, and no more than a MB unless one content is longer
local MOST = 100
local kind, rank, cursor = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local gone = {}
if rank >= 0 then
    local ids = redis.call('ZRANGE', KEYS.set, rank, rank + MOST - 1)
    for _, id in ipairs(ids) do
        if redis.call('HEXISTS', KEYS.hash, id) == 0 then
            gone[#gone + 1] = id
        end
    end
    rank = #ids < MOST and -1 or rank + MOST - #gone
end

-- The score of an id that only the hash has; nil if its content is none.
local function score_of(id, content)
    if kind == 'dead' then
        local letter = #id == 16 and letter_of(content)
        return letter and string.format('%.0f', letter[6])
    end
    -- A schedule whose next run is not known is due now: that is when it is calculated.
    local head = '\n' .. string.sub(content, 1, string.find(content, '\n\n', 1, true) or 0)
    return string.find(head, '\npaused\n', 1, true) and '+inf' or now
end

local again = {}
if cursor ~= '' and kind ~= 'retries' then
    local found
    local function read(cursor, count)
        return redis.call('HSCAN', KEYS.hash, cursor, 'COUNT', count)
    end
    found, cursor = scan(read, cursor, MOST)
    for i = 1, #found, 2 do
        local score = not redis.call('ZSCORE', KEYS.set, found[i]) and score_of(found[i], found[i + 1])
        if score then
            again[#again + 1] = score
            again[#again + 1] = found[i]
        end
    end
    cursor = cursor ~= '0' and cursor or ''
end
-- The first writes.
if #gone > 0 then
    redis.call('ZREM', KEYS.set, unpack(gone))
end
for i = 1, #again, 1000 do
    redis.call('ZADD', KEYS.set, 'NX', unpack(again, i, math.min(i + 999, #again)))
end
return {#gone, #again / 2, rank, kind == 'retries' and '' or cursor}
