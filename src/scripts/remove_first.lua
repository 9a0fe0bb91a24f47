-- Removes one element of a list, and forgets the job that it is.
-- KEYS   1 target   2 timeout set   3 jobs   4 notes   5 more notes   6 scratch
-- ARGV   1 payload
-- Reply  1, or 0 if there is none
-- Cost   a native scan of the list from its head
redis.call('LLEN', KEYS.target)
local now = time_of_jobs()
local removed = redis.call('LREM', KEYS.target, 1, ARGV[1])
if removed == 1 and now then
    forget_ready({ARGV[1]}, now)
end
return removed
