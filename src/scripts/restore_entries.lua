-- Returns polled entries that no caller received to the front of the ordered list, with the due times they
-- had.
-- KEYS   1 timeout set   2 ordered list   3 channel   4 receipt: says that this return was done   5 scratch
-- ARGV   1 ms for which the receipt is kept
--        2.. entry, score or '', entry, score or '', ... in the order of the poll
-- Reply  the head, if its transfer may have to be started, or false
-- Cost   O(log n) per entry
redis.call('LLEN', KEYS.ordered_list)
redis.call('ZRANGE', KEYS.timeout_set, 0, 0)
ensure_permitted({}, {'LPUSH'})
redis.call('ZADD', KEYS.scratch, 'XX', 0, '') -- changes nothing, but fails without the permission
if not redis.call('SET', KEYS.receipt, '1', 'NX', 'PX', ARGV[1]) then
    return redis.call('ZRANGE', KEYS.timeout_set, 0, 0, 'WITHSCORES')[2] or false
end
table.remove(ARGV, 1)
return restore(ARGV)
