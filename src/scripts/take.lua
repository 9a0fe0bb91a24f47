-- Pops payloads without blocking, in such a way that a lost reply loses none.
-- KEYS   1 target list   2 claim: remembers what this very pop took   3 claim of an earlier pop, whose reply arrived
-- ARGV   1 'LPOP' | 'RPOP'   2 most payloads   3 ms for which the claim is kept
-- Reply  {how many, payload, payload, ...} in the order in which they were popped; why the number: see script.rs
-- Cost   O(1) per payload
-- After a lost reply the same pop is sent again, and gets what the first try took. Then the claim is deleted.
if redis.call('EXISTS', KEYS[2]) == 1 then
    return counted(redis.call('LRANGE', KEYS[2], 0, -1))
end
local payloads = redis.call(ARGV[1], KEYS[1], ARGV[2])
redis.call('DEL', KEYS[3])
if payloads and #payloads > 0 then
    redis.call('RPUSH', KEYS[2], unpack(payloads))
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return counted(payloads or {})
