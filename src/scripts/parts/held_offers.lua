-- Lets receivers look for what travels with jobs. A part of offers that may have data.
-- Provides  check_notes, announce_notes

-- Fails, before the first write, if notes cannot be written.
local function check_notes()
    redis.call('ZADD', KEYS.notes, 'XX', 0, '') -- changes nothing, but fails without the permission
end

-- Without the permission, a sweep does it.
local function announce_notes()
    redis.pcall('HSET', KEYS.control, 'notes', '1')
end
