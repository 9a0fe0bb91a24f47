-- Sets one time to live for both keys of a delayed queue.
-- KEYS   1 timeout set   2 ordered list
-- ARGV   1 ms from now
-- Reply  1 if either key existed, else 0
-- Cost   O(1)
local set = 0
for _, key in ipairs(KEYS) do
    set = math.max(set, redis.call('PEXPIRE', key, ARGV[1]))
end
return set
