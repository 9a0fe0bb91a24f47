-- Reads a pending job.
-- KEYS   1 timeout set   2 jobs
-- ARGV   1 id
-- Reply  {due, first offer, both epoch ms; entry}; or false if there is no such job
-- Cost   O(1)
local entry, due, first = job_of(ARGV[1])
return entry and {due, first, entry} or false
