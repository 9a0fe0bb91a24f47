-- Tells whether the dead letters and their content agree. A part of the scripts that look for that.
-- Provides  are_apart

-- `foreign` is what agree.lua has noted: how many of the contents are none.
local function are_apart(foreign)
    local letters, fields = redis.pcall('ZCARD', KEYS.dead), redis.pcall('HLEN', KEYS.dead_messages)
    return type(letters) == 'number' and type(fields) == 'number' and fields - letters ~= (tonumber(foreign) or 0)
end
