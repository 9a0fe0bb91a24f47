-- Reads messages that wait for a retry, in the order in which they are due; or the members of a sorted set
-- alone.
-- KEYS   1 set: retries or leases   2 messages
-- ARGV   1 the score of the last one that was read, or '' to begin   2 that member   3 most members
--        4 'records' | 'members'
-- Reply  {clock in ms, member, score, record or '', member, ...}, '' for all records if they are not asked
--        for
-- Clock  the server's (TIME)
-- Cost   O(log n) for each, and O(log n) steps to find the place. It ends behind the one with which 1 MB is
--        exceeded
local time = redis.call('TIME')
local reply = {time[1] * 1000 + math.floor(time[2] / 1000)}
local from, bytes = behind(ARGV[1], ARGV[2]), 0
local found = redis.call('ZRANGE', KEYS.set, from, from + ARGV[3] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    local record = ARGV[4] == 'records' and redis.call('HGET', KEYS.messages, found[i]) or ''
    reply[#reply + 1] = found[i]
    reply[#reply + 1] = found[i + 1]
    reply[#reply + 1] = record
    bytes = bytes + #record
    if bytes > 1048576 then
        break
    end
end
return reply
