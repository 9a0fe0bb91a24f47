-- Reads claims of any pop. A part of the scripts for unconfirmed pops.
-- Provides  stored_claim

-- Returns the kind, the time and what was popped; or nil if there is no such field, or if it was not written
-- by a pop: then nothing in it may end up in a queue.
local function stored_claim(id)
    local readable, claim = pcall(cmsgpack.unpack, redis.call('HGET', KEYS.claims, id))
    if not readable or type(claim) ~= 'table' then
        return nil
    end
    local kind, popped_at, popped = unpack(claim, 1, 3)
    -- Another kind is of a later version.
    if kind ~= 'LPOP' and kind ~= 'RPOP' and kind ~= 'poll' or #claim > 3 or type(popped_at) ~= 'number' or type(popped) ~= 'table' then
        return nil
    end
    for i, element in ipairs(popped) do
        -- Of a poll, each second one is a score.
        local is_score = kind == 'poll' and i % 2 == 0
        if type(element) ~= 'string' or is_score and element ~= '' and not tonumber(element) then
            return nil
        end
    end
    if kind == 'poll' and #popped % 2 == 1 then
        return nil
    end
    return kind, popped_at, popped
end
