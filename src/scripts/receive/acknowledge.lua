-- Acknowledges deliveries. A part of `receive`.
-- Provides  held, acknowledge
-- A delivery is named by its member of the leases: message id (16 bytes) and delivery number (4). It holds as
-- long as it is there, so an older delivery of the same message changes nothing.

-- Which of `members[from..to]` hold: a list of '1' and '0', and the members that do.
local function held(members, from, to)
    local results, holding = {}, {}
    for start = from, to, 1000 do
        local stop = math.min(start + 999, to)
        local scores = redis.call('ZMSCORE', KEYS.leases, unpack(members, start, stop))
        for i = start, stop do
            local holds = scores[i - start + 1]
            results[#results + 1] = holds and '1' or '0'
            holding[#holding + 1] = holds and members[i] or nil
        end
    end
    return results, holding
end

-- Deletes messages that are done.
local function acknowledge(members, from, to)
    if from == to then
        if redis.call('ZREM', KEYS.leases, members[from]) == 0 then
            return {'0'}
        end
        redis.call('HDEL', KEYS.messages, string.sub(members[from], 1, 16))
        return {'1'}
    end
    local results, holding = held(members, from, to)
    for start = 1, #holding, 1000 do
        local stop = math.min(start + 999, #holding)
        redis.call('ZREM', KEYS.leases, unpack(holding, start, stop))
        local ids = {}
        for i = start, stop do
            ids[#ids + 1] = string.sub(holding[i], 1, 16)
        end
        redis.call('HDEL', KEYS.messages, unpack(ids))
    end
    return results
end
