-- Finds the place in a sorted set up to which it was read. A part of the scripts that read one in pages.
-- Provides  behind

-- Whether one member is behind another one of the same score. Lua's comparison goes by the server's locale.
local function is_behind(one, other)
    for i = 1, math.min(#one, #other) do
        local this, that = string.byte(one, i), string.byte(other, i)
        if this ~= that then
            return this > that
        end
    end
    return #one > #other
end

-- Returns the rank of the first member behind this score and member, which need not be there any more; 0 if
-- the score is ''.
local function behind(score, member)
    if score == '' then
        return 0
    end
    score = tonumber(score)
    local from, to = 0, redis.call('ZCARD', KEYS.set)
    while from < to do
        local middle = math.floor((from + to) / 2)
        local found = redis.call('ZRANGE', KEYS.set, middle, middle, 'WITHSCORES')
        local at = tonumber(found[2])
        if at > score or at == score and is_behind(found[1], member) then
            to = middle
        else
            from = middle + 1
        end
    end
    return from
end
