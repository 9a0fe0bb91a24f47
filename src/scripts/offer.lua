-- Stores entries with their due times: all of them or none, and only once however often the call is sent.
-- KEYS   1 timeout set: entry -> due, epoch ms   2 ordered list   3 channel   4 receipt of this call
--        5 control
-- ARGV   1 what the times count from, epoch ms; or 'now': from the server's clock
--        2 ms for which the receipt is kept
--        3 1 to look whether the number of pending entries is limited, or 0
--        4.. time in ms, entry, time, entry, ...
-- Reply  {what the times counted from, epoch ms; the head, if its transfer may have to be started, or false;
--        if the call has looked, 1 if there is a limit or 0}
--        or {false, why the server refused, 1 if nothing is stored or 0 if the entries are due nevertheless}
-- Clock  the server's (TIME), rounded up, so that nothing is due early
-- Cost   O(log n) per entry
-- When a reply is lost, the call is sent again with the same receipt. The try that comes first is executed
-- and leaves its outcome in the receipt; every other one returns that.
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local base = tonumber(ARGV[1]) or now
for i = 4, #ARGV, 2 do
    -- Beyond 10^15, Redisson's decoder and Lua's doubles lose digits.
    if base + ARGV[i] >= 1e15 then
        return redis.error_reply('REDELAY the due time is beyond 10^15 ms')
    end
end
local most, full
if ARGV[3] == '1' then
    most = most_pending()
    full = is_full(most, (#ARGV - 3) / 2)
end
-- The first write, and the only one whose refusal ends the script. It fails if the memory is full.
if not redis.call('SET', KEYS.receipt, full and '1 ' .. full or base, 'NX', 'PX', ARGV[2]) then
    local outcome = redis.call('GET', KEYS.receipt)
    if tonumber(outcome) then
        return {tonumber(outcome), redis.pcall('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2] or false}
    end
    return {false, string.sub(outcome, 3), tonumber(string.sub(outcome, 1, 1))}
end

if full then
    return {false, full, 1}
end

local entries, first_due, refused = {nil}, nil, nil -- what is new, with room for one
for i = 4, #ARGV, 2 do
    local due, entry = string.format('%.0f', base + ARGV[i]), ARGV[i + 1]
    local is_new = redis.pcall('ZADD', KEYS.timeout_set, 'NX', due, entry)
    if is_new == 1 then
        entries[#entries + 1] = entry
        first_due = first_due or due
    elseif is_new ~= 0 then
        refused = is_new.err
        break
    end
end
for i = 1, refused and 0 or #entries, 1000 do
    local length = redis.pcall('RPUSH', KEYS.ordered_list, unpack(entries, i, math.min(i + 999, #entries)))
    if type(length) == 'table' then
        refused = length.err
        break
    end
end
if refused then
    -- What is stored is taken back.
    local undone = 1
    for i = 1, #entries, 1000 do
        if type(redis.pcall('ZREM', KEYS.timeout_set, unpack(entries, i, math.min(i + 999, #entries)))) == 'table' then
            undone = 0
        end
    end
    redis.call('SET', KEYS.receipt, undone .. ' ' .. refused, 'PX', ARGV[2])
    return {false, refused, undone}
end
-- The entries are stored. A refusal of what follows changes nothing in that.
local head = redis.pcall('ZRANGE', KEYS.timeout_set, '0', '0', 'WITHSCORES')
local is_head, to_start = false, false
for i = 1, #entries do
    is_head = is_head or entries[i] == head[1]
end
if is_head then
    -- Redisson sets its timer to whatever is announced, later times too, so only a new head is announced.
    to_start = head[2]
    redis.pcall('PUBLISH', KEYS.channel, to_start)
elseif not head[2] or tonumber(head[2]) <= now then
    -- An announcement was lost, or never made.
    to_start = head[2] or first_due or false
end
return {base, to_start, most and math.min(most, 1)}
