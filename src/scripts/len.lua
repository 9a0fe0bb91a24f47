-- Counts the pending entries: those in the ordered list, as Redisson does; or of both structures the more,
-- while the list is rebuilt, because due entries leave it before they are moved.
-- KEYS   1 timeout set   2 ordered list   3 rebuild
-- Reply  how many
-- Cost   O(1)
local listed = redis.call('LLEN', KEYS.ordered_list)
if redis.pcall('EXISTS', KEYS.rebuild) == 1 then
    local pending = redis.pcall('ZCARD', KEYS.timeout_set)
    return type(pending) == 'number' and math.max(pending, listed) or listed
end
return listed
