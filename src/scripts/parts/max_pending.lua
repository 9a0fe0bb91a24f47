-- Whether a queue has as many pending entries as it may have. A part of the scripts that offer.
-- Provides  most_pending, is_full

-- How many pending entries the queue may have, or 0 for any number. Without the permission, nobody knows of a
-- limit.
local function most_pending()
    local most = redis.pcall('HGET', KEYS.control, 'max_pending')
    return type(most) == 'string' and tonumber(most) or 0
end

-- If there is no room for `more` entries: how many there may be, how many more there is room for, and `more`.
-- The client makes a text of it. False if there is room, or if `most` is nil: nobody has looked.
local function is_full(most, more)
    if not most or most == 0 or more <= 0 then
        return false
    end
    local room = most - redis.call('ZCARD', KEYS.timeout_set)
    if more <= room then
        return false
    end
    return string.format('FULL %.0f %.0f %.0f', most, math.max(room, 0), more)
end
