-- Sets one time to live for both keys of a delayed queue.
-- KEYS   1 timeout set   2 ordered list
-- ARGV   1 ms from now
-- Reply  1 if either key existed, else 0
-- Cost   O(1)
local has_set = redis.call('PEXPIRE', KEYS.timeout_set, ARGV[1])
local has_list = redis.call('PEXPIRE', KEYS.ordered_list, ARGV[1])
return math.max(has_set, has_list)
