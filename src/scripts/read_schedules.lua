-- Reads schedules, in the order of their next runs, or some of them by their names.
-- KEYS   1 schedules: name -> next run, epoch ms; +inf if there is none
--        2 records of schedules: name -> record
-- ARGV   1 how many to skip   2 most schedules   3.. only these names, if any are given, up to 100
-- Reply  {clock in ms, 1 if names and records do not agree or 0, name, next run or false, record or false,
--        name, ...}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each, and for those that are skipped. It ends behind the one with which 1 MB is
--        exceeded
local time = redis.call('TIME')
local reply, bytes = {time[1] * 1000 + math.floor(time[2] / 1000), 0}, 0

-- Returns whether there is room for more.
local function add(name, next)
    local record = redis.call('HGET', KEYS.records, name)
    reply[#reply + 1] = name
    reply[#reply + 1] = next
    reply[#reply + 1] = record
    bytes = bytes + #(record or '')
    return bytes <= 1048576
end

for i = 3, #ARGV do
    if not add(ARGV[i], redis.call('ZSCORE', KEYS.schedules, ARGV[i])) then
        break
    end
end
if ARGV[3] then
    return reply
end
reply[2] = redis.call('ZCARD', KEYS.schedules) == redis.call('HLEN', KEYS.records) and 0 or 1
local found = redis.call('ZRANGE', KEYS.schedules, ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    if not add(found[i], found[i + 1]) then
        break
    end
end
return reply
