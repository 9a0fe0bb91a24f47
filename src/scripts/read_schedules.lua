-- Reads schedules, in the order of their next runs, or one of them.
-- KEYS   1 schedules: name -> next run, epoch ms; +inf if there is none   2 records of schedules: name -> record
-- ARGV   1 how many to skip   2 most schedules   3 only this name, if it is given
-- Reply  {clock in ms, 1 if names and records do not agree or 0, name, next run or false, record or false, name, ...}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each, and for those that are skipped
local time = redis.call('TIME')
local reply, bytes = {time[1] * 1000 + math.floor(time[2] / 1000), 0}, 0

local function add(name, next)
    local record = redis.call('HGET', KEYS.records, name)
    reply[#reply + 1] = name
    reply[#reply + 1] = next
    reply[#reply + 1] = record
    bytes = bytes + #(record or '')
end

if ARGV[3] then
    add(ARGV[3], redis.call('ZSCORE', KEYS.schedules, ARGV[3]))
    return reply
end
reply[2] = redis.call('ZCARD', KEYS.schedules) == redis.call('HLEN', KEYS.records) and 0 or 1
local found = redis.call('ZRANGE', KEYS.schedules, ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    add(found[i], found[i + 1])
    if bytes > 1048576 then
        break
    end
end
return reply
