-- Removes one pending entry, given its bytes, and forgets the job that it is.
-- KEYS   1 timeout set   2 ordered list   3 scratch   4 jobs   5 notes   6 more notes
-- ARGV   1 entry   2 'listed': also if only the ordered list has it
-- Reply  1, or 0 if it is no longer there
-- Cost   O(log n), and one native scan of the ordered list from its tail, as most cancelled entries are young
-- Nothing is announced: a timer that is set for this entry finds nothing due, and is set again.
redis.call('LLEN', KEYS.ordered_list)
local ids, fields = jobs_of({ARGV[1]})
ensure_permitted({'LREM'}, {})
local is_pending = redis.call('ZREM', KEYS.timeout_set, ARGV[1]) == 1
if not is_pending and ARGV[2] ~= 'listed' then
    return 0
end
local was_listed = redis.call('LREM', KEYS.ordered_list, -1, ARGV[1]) == 1
if not is_pending and not was_listed then
    return 0
end
forget(ids, fields)
return 1
