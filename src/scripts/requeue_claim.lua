-- Returns what one pop took to where it was, and deletes its claim.
-- KEYS   1 claims   2 target   3 timeout set   4 ordered list   5 channel   6 scratch
-- ARGV   1 id of the claim
-- Reply  {how many were returned, the head of the queue if one of them is the head now, else false}
-- Cost   O(log n) for each
local kind, _, popped = stored_claim(ARGV[1])
if not kind then
    return {0, false}
end
redis.call('LLEN', KEYS.target)
redis.call('LLEN', KEYS.ordered_list)
redis.call('ZRANGE', KEYS.timeout_set, 0, 0)
ensure_permitted({}, {kind == 'RPOP' and 'RPUSH' or 'LPUSH'})
redis.call('ZADD', KEYS.scratch, 'XX', 0, '') -- changes nothing, but fails without the permission
redis.call('HDEL', KEYS.claims, ARGV[1])
if kind ~= 'poll' then
    for i = #popped, 1, -1 do
        if kind == 'RPOP' then
            redis.call('RPUSH', KEYS.target, popped[i])
        else
            redis.call('LPUSH', KEYS.target, popped[i])
        end
    end
    return {#popped, false}
end
local returned = restore(popped)
return {#popped / 2, returned}
