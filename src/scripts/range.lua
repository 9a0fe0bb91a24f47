-- Reads a part of a list.
-- KEYS   1 target, ordered list or quarantine
-- ARGV   1 first index   2 last index, as in LRANGE
-- Reply  {how many, element, element, ...}; a number is first: see scripts.rs
-- Cost   as LRANGE
return with_count(redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2]))
