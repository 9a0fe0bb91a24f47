-- Finds a missing permission before the first write. A part of the scripts that write with several commands.
-- Provides  ensure_permitted
-- Redis checks permissions command by command, and keeps what a script wrote before a refusal. So a script
-- first runs the commands that it is going to need on its scratch key, which is absent before and after.
-- The first command needs no memory, and from then on no command is refused for lack of it.
local function ensure_permitted(commands, pushes)
    redis.call('LTRIM', KEYS.scratch, 1, 0)
    for _, command in ipairs(commands) do
        -- The arguments have no effect on an absent key, whatever the command.
        if command == 'LREM' then
            redis.call('LREM', KEYS.scratch, 1, 0)
        elseif command == 'ZREM' then
            redis.call('ZREM', KEYS.scratch, 1, 0)
        elseif command == 'HDEL' then
            redis.call('HDEL', KEYS.scratch, 1, 0)
        elseif command == 'ZREMRANGEBYRANK' then
            redis.call('ZREMRANGEBYRANK', KEYS.scratch, 1, 0)
        else
            error('REDELAY ' .. command .. ' is not tried out')
        end
    end
    local refused
    for _, push in ipairs(pushes) do
        local pushed
        if push == 'RPUSH' then
            pushed = redis.pcall('RPUSH', KEYS.scratch, '')
        else
            pushed = redis.pcall('LPUSH', KEYS.scratch, '')
        end
        refused = type(pushed) == 'table' and push or refused
    end
    redis.call('LTRIM', KEYS.scratch, 1, 0)
    if refused == 'RPUSH' then
        redis.call('RPUSH', KEYS.scratch, '')
    elseif refused then
        redis.call('LPUSH', KEYS.scratch, '')
    end
end
