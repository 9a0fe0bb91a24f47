-- Takes one pending entry back, known by its bytes.
-- KEYS   1 timeout set   2 ordered list
-- ARGV   1 entry
-- Reply  1, or 0 when it is no longer pending
-- Cost   O(log n), and one native scan of the list from its tail: most entries that are cancelled are young
-- Nothing is announced: a timer armed for this entry finds nothing and is set again.
redis.call('LLEN', KEYS[2])
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
    return 0
end
redis.call('LREM', KEYS[2], -1, ARGV[1])
return 1
