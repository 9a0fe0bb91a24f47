-- Reads a part of a list.
-- KEYS   1 target, ordered list or quarantine
-- ARGV   1 first index   2 last index, as in LRANGE
-- Reply  {element, element, ...}
-- Cost   as LRANGE
return redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2])
