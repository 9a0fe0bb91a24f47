-- Puts payloads back where they were popped, for takers that are gone.
-- KEYS   1 target list   2 marker of this return
-- ARGV   1 'LPUSH' | 'RPUSH'   2 ms for which the marker remembers   3.. payloads, in the order of the pushes
-- Reply  1, or 0 when an earlier try, whose reply was lost, had done it
-- Cost   O(1) per payload
redis.call('LLEN', KEYS[1])
if not redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[2]) then
    return 0
end
for i = 3, #ARGV do
    redis.call(ARGV[1], KEYS[1], ARGV[i])
end
return 1
