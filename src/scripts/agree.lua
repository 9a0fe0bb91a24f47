-- Lets a sorted set and a hash that have the same ids agree again, a part of them, after one of the keys was
-- deleted by hand, or something in it. What has no content any more is forgotten, and what only has a content
-- is in the set again. Idempotent.
-- KEYS   1 set: ids, sorted   2 hash: id -> content
--        3 control: how many fields of the content of dead letters are none   4 scratch
-- ARGV   1 what they have: 'dead' letters, 'schedules', or 'retries', which need not have all messages
--        2 how many ids of the set were looked at, or -1: all
--        3 the cursor of a scan of the hash, or '': it has ended   4 how many fields were none
-- Reply  {how many ids were forgotten, how many are in the set again, what 2, 3 and 4 are in the next call, 1
--        if all were looked at, and 4 is news, or 0}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each of about a hundred ids and a hundred fields, and no more than a MB unless one
--        content is longer
local MOST = 100
local kind, rank, cursor, foreign = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
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
    -- A schedule whose next run is not known is due now: that is when it is calculated. If its runs do not
    -- overlap, it would run then: 0 says that the time is not known.
    local head = '\n' .. string.sub(content, 1, string.find(content, '\n\n', 1, true) or 0)
    local unknown = string.find(head, '\nno_overlap ', 1, true) and '0' or now
    return string.find(head, '\npaused\n', 1, true) and '+inf' or unknown
end

local again = {}
if cursor ~= '' and kind ~= 'retries' then
    local found
    local function read(cursor, count)
        return redis.call('HSCAN', KEYS.hash, cursor, 'COUNT', count)
    end
    found, cursor = scan(read, cursor, MOST)
    for i = 1, #found, 2 do
        if not redis.call('ZSCORE', KEYS.set, found[i]) then
            local score = score_of(found[i], found[i + 1])
            if score then
                again[#again + 1] = score
                again[#again + 1] = found[i]
            else
                foreign = foreign + 1
            end
        end
    end
    cursor = cursor ~= '0' and cursor or ''
end
if kind == 'retries' then
    cursor = ''
end
-- The first writes.
if #gone > 0 then
    redis.call('ZREM', KEYS.set, unpack(gone))
end
for i = 1, #again, 1000 do
    redis.call('ZADD', KEYS.set, 'NX', unpack(again, i, math.min(i + 999, #again)))
end
-- No client reads these fields again while there are so many. Without the permission, each client does.
local is_news = false
if kind == 'dead' and rank < 0 and cursor == '' then
    local known = redis.pcall('HGET', KEYS.control, 'foreign')
    if foreign > 0 and known ~= tostring(foreign) then
        is_news = type(redis.pcall('HSET', KEYS.control, 'foreign', tostring(foreign))) == 'number'
    elseif foreign == 0 and known then
        redis.pcall('HDEL', KEYS.control, 'foreign')
    end
end
return {#gone, #again / 2, rank, cursor, foreign, is_news and 1 or 0}
