-- Reads dead letters, the oldest first, or their ids alone.
-- KEYS   1 set: dead letters   2 dead messages: their content
-- ARGV   1 the score of the last one that was read, or '' to begin   2 its id   3 most letters
--        4 'letters' | 'ids'
-- Reply  {the score and id of the last one it looked at, '' if there are no more; id, score, reason, last
--        error, failures, losses, first claim and death in epoch ms, payload, data of a job or '', id, ...};
--        or {that score and id, id, id, ...}
-- Cost   O(log n) for each, and O(log n) steps to find the place. It ends behind the one with which 1 MB is
--        exceeded; for ids 4 MB, as many as one call requeues
local from = behind(ARGV[1], ARGV[2])
local reads_ids = ARGV[4] == 'ids'
local MOST_BYTES = reads_ids and 4194304 or 1048576
local reply, bytes = {'', ''}, 0
local found = redis.call('ZRANGE', KEYS.set, from, from + ARGV[3] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    local id, score = found[i], found[i + 1]
    reply[1], reply[2] = score, id
    local content = redis.call('HGET', KEYS.dead_messages, id)
    local letter = letter_of(content)
    if letter and #id == 16 then
        local reason, error, failed, lost, first, died, _, payload, data = unpack(letter)
        local parts = {id, score, reason, error, failed, lost, first, died, payload, data or ''}
        for _, part in ipairs(reads_ids and {id} or parts) do
            reply[#reply + 1] = part
        end
        bytes = bytes + #content
    end
    if bytes > MOST_BYTES then
        break
    end
end
return reply
