-- Returns what one pop took to where it was, and deletes its claim.
-- KEYS   1 claims   2 target   3 timeout set   4 ordered list   5 channel   6 scratch
-- ARGV   1 id of the claim
-- Reply  {how many were returned, the head of the queue if one of them is the head now, else false}
-- Cost   O(log n) for each
local kind, _, popped = stored_claim(KEYS[1], ARGV[1])
if not kind then
    return {0, false}
end
redis.call('LLEN', KEYS[2])
redis.call('LLEN', KEYS[4])
redis.call('ZRANGE', KEYS[3], 0, 0)
ensure_permitted(KEYS[6], {}, {kind == 'RPOP' and 'RPUSH' or 'LPUSH'})
redis.call('ZADD', KEYS[6], 'XX', 0, '') -- changes nothing, but fails without the permission
redis.call('HDEL', KEYS[1], ARGV[1])
if kind ~= 'poll' then
    for i = #popped, 1, -1 do
        redis.call(kind == 'RPOP' and 'RPUSH' or 'LPUSH', KEYS[2], popped[i])
    end
    return {#popped, false}
end
local returned = restore(KEYS[3], KEYS[4], KEYS[5], popped)
return {#popped / 2, returned}
