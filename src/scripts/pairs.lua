-- The quarantine holds pairs, score and entry: in front of every script that takes one of them out.
-- Returns where the first such pair is: the position of its score, counted from 0, or nil when there is none.
local function find_pair(list, score, entry)
    -- Nearly always the first is the one. Others have the same bytes and another score.
    for count = 1, 0, -1 do
        for _, at in ipairs(redis.call('LPOS', list, entry, 'COUNT', count)) do
            -- A score may look like an entry, but never is at an odd position.
            if at % 2 == 1 and redis.call('LINDEX', list, at - 1) == score then
                return at - 1
            end
        end
    end
end

local function remove_pair(list, at)
    -- What is to go becomes equal to nothing that is in front of it, and then goes.
    local mark = 'gone'
    while redis.call('LPOS', list, mark, 'MAXLEN', at + 2) do
        mark = mark .. '.'
    end
    redis.call('LSET', list, at, mark)
    redis.call('LSET', list, at + 1, mark)
    redis.call('LREM', list, 2, mark)
end
