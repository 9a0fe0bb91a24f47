-- Finds a missing permission before the first write. A part of the scripts that write with several commands.
-- Provides  ensure_permitted
-- Redis checks permissions command by command, and keeps what a script wrote before a refusal. So a script first runs the
-- commands that it is going to need on its scratch key, which is absent before and after.
-- The first command needs no memory, and from then on no command is refused for lack of it.
local function ensure_permitted(scratch, commands, pushes)
    redis.call('LTRIM', scratch, 1, 0)
    for _, command in ipairs(commands) do
        -- The arguments have no effect on an absent key, whatever the command.
        redis.call(command, scratch, 1, 0)
    end
    local refused
    for _, push in ipairs(pushes) do
        if type(redis.pcall(push, scratch, '')) == 'table' then
            refused = push
        end
    end
    redis.call('LTRIM', scratch, 1, 0)
    if refused then
        redis.call(refused, scratch, '')
    end
end
