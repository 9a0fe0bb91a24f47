-- Tells the states of jobs.
-- KEYS   1 timeout set   2 jobs   3 notes   4 target   5 inbox   6 messages   7 retries   8 dead
--        9 dead messages   10 more notes
-- ARGV   1.. ids, up to 100
-- Reply  {for each id a state, and of what it is in: a number, a time in epoch ms, a text
--        'none' 0 0 ''; 'pending' 0 due ''; 'ready' 0 due ''; 'running' attempt, time of its claim, '';
--        'waiting' attempts so far, due, last error; 'dead' 0 time of death, reason}
--        It may end behind any of them
-- Cost   O(log n) for each; and a native scan of the target, if it holds its id and was due, until 10 ms are
--        over. It reads messages of 4 MB, about
local MOST_BYTES, BUDGET = 4194304, 10000
local reply, bytes = {}, 0

local function tell(state, number, at, text)
    for _, part in ipairs({state, number, at, text}) do
        reply[#reply + 1] = part
    end
end

for _, id in ipairs(ARGV) do
    if bytes > MOST_BYTES or #reply > 0 and spent() > BUDGET then
        break
    end
    local entry, due, _, field = job_of(id)
    local holder = not entry and holder_of(id, field, now / 1000)
    if entry then
        tell('pending', 0, due, '')
    elseif not holder then
        tell('none', 0, 0, '')
    elseif holder.state == 'ready' then
        tell('ready', 0, holder.at, '')
    elseif holder.state == 'dead' then
        local letter = letter_of(redis.call('HGET', KEYS.dead_messages, holder.message))
        tell('dead', 0, letter and letter[6] or 0, letter and letter[1] or '')
        bytes = bytes + #(letter and letter[8] or '')
    else
        local record = redis.call('HGET', KEYS.messages, holder.message)
        local is_known = is_readable(record) and data_in(record)
        local _, failed, lost = counts(is_known and record or string.rep('\0', 24))
        bytes = bytes + #record
        if holder.state == 'running' then
            tell('running', failed + lost + 1, is_known and claimed_of(record) or 0, '')
        else
            tell('waiting', failed + lost, holder.at, is_known and error_in(record) or '')
        end
    end
end
return reply
