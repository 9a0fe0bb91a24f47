-- Reads dead letters, the oldest first.
-- KEYS   1 dead letters   2 dead messages: their content
-- ARGV   1 how many to skip   2 most letters
-- Reply  {how many letters it looked at, id, reason, last error, failures, losses, first claim and death in epoch ms, payload, id, ...}
-- Cost   O(log n) for each, and for those that are skipped
local reply, bytes = {0}, 0
for _, id in ipairs(redis.call('ZRANGE', KEYS.dead, ARGV[1], ARGV[1] + ARGV[2] - 1)) do
    reply[1] = reply[1] + 1
    local content = redis.call('HGET', KEYS.dead_messages, id)
    local letter = letter_of(content)
    if letter then
        local reason, error, failed, lost, first, died, _, payload = unpack(letter)
        for _, part in ipairs({id, reason, error, failed, lost, first, died, payload}) do
            reply[#reply + 1] = part
        end
        bytes = bytes + #content
    end
    if bytes > 1048576 then
        break
    end
end
return reply
