-- Finds out which permissions the user lacks, without using them.
-- KEYS   1 target   2 timeout set   3 claims
-- Reply  {what needs a permission and which ones are missing, ...}; empty if none is, or if the server cannot tell
-- Cost   O(1)
local missing = {}
-- Redis 7 and Valkey have it.
if not redis.acl_check_cmd then
    return missing
end
local function check(what, key, commands)
    local names = {}
    for command in string.gmatch(commands, '%S+') do
        if not redis.acl_check_cmd(command, key, 1, 0) then
            names[#names + 1] = command
        end
    end
    if #names > 0 then
        missing[#missing + 1] = what .. ' needs ' .. table.concat(names, ', ')
    end
end
check('offer', KEYS[2], 'SET GET ZADD RPUSH ZRANGE ZREM DEL')
check('transfer', KEYS[2], 'ZCOUNT ZRANGE ZSCORE ZREMRANGEBYRANK')
check('transfer', KEYS[1], 'LLEN PTTL LRANGE RPUSH LPUSH LSET LTRIM LREM')
check('take', KEYS[1], 'BLPOP LRANGE LTRIM LPUSH SET DEL TYPE')
check('take', KEYS[3], 'HGET HSET HDEL PEXPIRE')
check('cancel and remove', KEYS[2], 'ZREM LLEN LREM LTRIM LSET')
return missing
