-- The server's clock. A part of the scripts that tell a time in microseconds; it comes first.
-- Provides  now

-- At the start, in microseconds.
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
