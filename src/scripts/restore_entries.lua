-- Returns polled entries that nobody received to the front of the ordered list, with the due times they had.
-- KEYS   1 timeout set   2 ordered list   3 channel   4 receipt: says that this return was done   5 scratch
-- ARGV   1 ms for which the receipt is kept   2.. entry, score or '', entry, score or '', ... in the order of the poll
-- Reply  the head, if its transfer may have to be started, or false
-- Cost   O(log n) per entry
redis.call('LLEN', KEYS[2])
redis.call('ZRANGE', KEYS[1], 0, 0)
ensure_permitted(KEYS[5], {}, {'LPUSH'})
redis.call('ZADD', KEYS[5], 'XX', 0, '') -- changes nothing, but fails without the permission
if not redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[1]) then
    return redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or false
end
table.remove(ARGV, 1)
return restore(KEYS[1], KEYS[2], KEYS[3], ARGV)
