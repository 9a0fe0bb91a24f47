-- Reads a part of a list.
-- KEYS   1 list
-- ARGV   1 first index   2 last index, as in LRANGE
-- Reply  {how many, element, element, ...}; why the number: see script.rs
-- Cost   as LRANGE
return counted(redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2]))
