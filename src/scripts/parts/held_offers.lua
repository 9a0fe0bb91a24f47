-- Lets receivers look for what travels with jobs. A part of offers that may have data.
-- Provides  announce_notes

-- Without the permission, a sweep does it.
local function announce_notes()
    redis.pcall('HSET', KEYS.control, 'notes', '1')
end
