-- Deletes dead letters, and their content with them. Idempotent.
-- KEYS   1 dead letters   2 their content   3 scratch
-- ARGV   1.. ids, up to 1,000
-- Reply  how many there were
-- Cost   O(log n) for each
ensure_permitted(KEYS[3], {'ZREM', 'HDEL'}, {})
local removed = redis.call('ZREM', KEYS[1], unpack(ARGV))
redis.call('HDEL', KEYS[2], unpack(ARGV))
return removed
