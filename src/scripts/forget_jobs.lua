-- Forgets jobs whose entries were polled, unless these are pending again.
-- KEYS   1 timeout set   2 jobs   3 notes   4 more notes
-- ARGV   1.. entries, up to 1,000
-- Reply  how many were jobs
-- Cost   O(log n) for each
local scores, gone = redis.call('ZMSCORE', KEYS.timeout_set, unpack(ARGV)), {}
for i, entry in ipairs(ARGV) do
    if not scores[i] then
        gone[#gone + 1] = entry
    end
end
local ids, fields = jobs_of(gone)
forget(ids, fields)
return #ids
