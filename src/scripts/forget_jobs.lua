-- Forgets jobs whose entries were polled, unless these are pending again, or are other jobs by now.
-- KEYS   1 timeout set   2 jobs   3 notes   4 more notes
-- ARGV   1.. id, score, id, score, ..., up to 1,000 pairs: those of the entries
-- Reply  how many are forgotten
-- Cost   O(log n) for each
local entries = {}
for i = 1, #ARGV, 2 do
    local field = redis.call('HGET', KEYS.jobs, ARGV[i])
    if field and has_entry(field) and due_of(field) == tonumber(ARGV[i + 1]) then
        local entry = entry_of(field)
        if not redis.call('ZSCORE', KEYS.timeout_set, entry) then
            entries[#entries + 1] = entry
        end
    end
end
local ids, fields = jobs_of(entries)
forget(ids, fields)
return #ids
