-- Deletes dead letters, and their content with them. Idempotent.
-- KEYS   1 dead letters   2 dead messages: their content   3 scratch
-- ARGV   1.. ids, up to 1,000
-- Reply  how many there were
-- Cost   O(log n) for each
ensure_permitted({'ZREM', 'HDEL'}, {})
local removed = redis.call('ZREM', KEYS.dead, unpack(ARGV))
redis.call('HDEL', KEYS.dead_messages, unpack(ARGV))
return removed
