-- Reads messages in flight by their ids.
-- KEYS   1 messages   2 leases
-- ARGV   1.. ids, up to 100
-- Reply  {clock in ms, how many of these it looked at, id, end of the lease in epoch ms, record, id, ...}
-- Clock  the server's (TIME)
-- Cost   O(log n) for each. It ends behind the one with which 1 MB is exceeded
local time = redis.call('TIME')
local reply, bytes = {time[1] * 1000 + math.floor(time[2] / 1000), 0}, 0
for i, id in ipairs(ARGV) do
    local record = redis.call('HGET', KEYS.messages, id)
    -- A lease of an earlier delivery may be left.
    local ends = record and redis.call('ZSCORE', KEYS.leases, id .. string.sub(record, 2, 5))
    reply[2] = i
    if ends then
        reply[#reply + 1] = id
        reply[#reply + 1] = ends
        reply[#reply + 1] = record
        bytes = bytes + #record
    end
    if bytes > 1048576 then
        break
    end
end
return reply
