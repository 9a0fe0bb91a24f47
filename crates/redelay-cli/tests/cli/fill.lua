-- Puts entries of 100 bytes into a queue, which are due in an hour or later. For tests of scale and `make bench-looking`.
-- KEYS   1 its name
-- ARGV   1 the number of the first one   2 that of the last one
local name, first, last = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local now = redis.call('TIME')[1] * 1000 + 3600000
for n = first, last do
    local payload = string.char(0x03, 0xde) .. string.rep('x', 91) .. string.format('%07d', n) .. string.char(0xe1)
    local entry = struct.pack('<B', 8) .. string.format('%08d', n) .. struct.pack('<l', #payload) .. payload
    redis.call('ZADD', 'redisson_delay_queue_timeout:{' .. name .. '}', now + n, entry)
    redis.call('RPUSH', 'redisson_delay_queue:{' .. name .. '}', entry)
end
