-- Lists an entry whose due time has changed. A part of the scripts that change due times.
-- Provides  list_again
-- While a large backlog is moved, its due entries may be missing in the ordered list: see
-- transfer/rebuild.lua. One that is not due any more stays pending, and so belongs there. Without a
-- permission, it is missing until it is due.
local function list_again(entry, was_due, now)
    if was_due <= now and redis.pcall('EXISTS', KEYS.rebuild) == 1 and redis.pcall('LPOS', KEYS.ordered_list, entry) == false then
        redis.pcall('RPUSH', KEYS.ordered_list, entry)
    end
end
