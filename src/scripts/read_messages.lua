-- Reads messages in the order of a sorted set, of leases or retries.
-- KEYS   1 set: leases or retries   2 messages
-- ARGV   1 how many to skip   2 most messages
-- Reply  {clock in ms, id, score, record, id, score, record, ...}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each, and for those that are skipped
local time = redis.call('TIME')
local reply = {time[1] * 1000 + math.floor(time[2] / 1000)}
local bytes = 0
local found = redis.call('ZRANGE', KEYS.set, ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    local id = string.sub(found[i], 1, 16)
    local record = redis.call('HGET', KEYS.messages, id) or ''
    reply[#reply + 1] = id
    reply[#reply + 1] = found[i + 1]
    reply[#reply + 1] = record
    bytes = bytes + #record
    if bytes > 1048576 then
        break
    end
end
return reply
