-- Pops payloads without blocking. A lost reply loses none of them.
-- KEYS   1 target   2 claim: a copy of what this pop takes   3 claim of an earlier pop whose reply has arrived
-- ARGV   1 'LPOP' | 'RPOP'   2 most payloads   3 ms for which the claim is kept
-- Reply  {how many, payload, payload, ...} in the order of the pops; a number is first: see scripts.rs
-- Cost   O(1) per payload
-- After a lost reply the same pop is sent again, and returns what the first try took. After its reply the claim is deleted.
if redis.call('EXISTS', KEYS[2]) == 1 then
    return with_count(redis.call('LRANGE', KEYS[2], 0, -1))
end
local payloads = redis.call(ARGV[1], KEYS[1], ARGV[2])
redis.call('DEL', KEYS[3])
if payloads and #payloads > 0 then
    redis.call('RPUSH', KEYS[2], unpack(payloads))
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return with_count(payloads or {})
