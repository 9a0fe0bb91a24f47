-- Forgets jobs whose entries were polled, unless these are pending again.
-- KEYS   1 timeout set   2 jobs   3 notes   4 more notes   5 scratch
-- ARGV   1.. entry, score, entry, score, ..., up to 1,000 pairs, and about 1 MB
-- Reply  how many ids are forgotten
-- Cost   O(log n) for each
local forgotten = 0
check_notes()
for i = 1, #ARGV, 2 do
    local entry, due = ARGV[i], tonumber(ARGV[i + 1])
    local id = string.sub(entry, 2, 1 + string.byte(entry))
    local score, field = redis.call('ZSCORE', KEYS.timeout_set, entry), redis.call('HGET', KEYS.jobs, id)
    if due and tonumber(score) ~= due then
        -- The id may be that of a later job by now.
        local payload = string.sub(entry, 10 + #id)
        if not remove_note(payload, due, id, false) then
            remove_note(payload, due, id, true)
        end
        local is_its = not score and field and has_entry(field) and entry_of(field) == entry
        if is_its and (kind_of(field) == 'p' or due_of(field) == due) then
            forgotten = forgotten + redis.call('HDEL', KEYS.jobs, id)
        end
    end
end
return forgotten
