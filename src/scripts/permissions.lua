-- Finds out which permissions the user lacks, without using them.
-- KEYS   none: a key that the user may not touch is to be reported, too
-- ARGV   1 target   2 timeout set   3 ordered list   4 quarantine   5 claims   6 scratch
--        7 receipt of an offer   8 receipt of a return   9 channel of the announcements
--        10 channel of the transfers   11 rebuild
-- Reply  {what needs a permission, and which commands on which key are missing, ...}; empty if none is, or if
--        the server cannot tell
-- Cost   O(1)
local missing = {}
-- Redis 7 and Valkey have it.
if not redis.acl_check_cmd then
    return missing
end

-- Checks commands with these arguments: the server finds the keys and channels among them. Of CLIENT|KILL,
-- the second word is an argument.
local function check(what, commands, ...)
    local names = {}
    for name in string.gmatch(commands, '%S+') do
        local words = {...}
        local command, subcommand = string.match(name, '^(%w+)|?(%w*)$')
        if subcommand ~= '' then
            table.insert(words, 1, subcommand)
        end
        -- It throws if the server does not have the command, because an administrator has renamed it.
        local known, permitted = pcall(redis.acl_check_cmd, command, unpack(words))
        if not (known and permitted) then
            names[#names + 1] = name
        end
    end
    if #names > 0 then
        local key = ...
        local on = type(key) == 'string' and ' on ' .. key or ''
        missing[#missing + 1] = what .. ' needs ' .. table.concat(names, ', ') .. on
    end
end

local target, timeout_set, ordered_list, quarantine, claims, scratch = unpack(ARGV, 1, 6)
local offered, returned, channel, moved, rebuild = unpack(ARGV, 7, 11)
-- Redis 7.0 and Valkey 9.1 crash when they look for the keys of an EVALSHA that lacks their number.
check('every call', 'EVALSHA', 0, 0)
check('every call', 'TIME')
check('offer', 'SET GET DEL', offered)
check('offer', 'ZADD ZRANGE ZREM', timeout_set)
check('offer', 'RPUSH', ordered_list)
check('offer', 'PUBLISH', channel, '')
check('transfer', 'PTTL ZCOUNT ZRANGE ZSCORE ZMSCORE ZREMRANGEBYRANK', timeout_set)
check('transfer', 'LLEN PTTL LRANGE LPUSH LSET LTRIM LREM PEXPIRE', ordered_list)
check('transfer', 'LLEN RPUSH LREM', target)
check('transfer', 'LLEN RPUSH', quarantine)
check('transfer', 'LTRIM LREM ZREMRANGEBYRANK RPUSH LPUSH', scratch)
check('transfer', 'SET DEL', rebuild)
check('transfer', 'SUBSCRIBE', channel)
check('transfer', 'PUBLISH SUBSCRIBE', moved)
check('take', 'BLPOP BRPOP', target, 0)
check('take', 'LRANGE LTRIM LLEN LPUSH RPUSH TYPE', target)
check('take', 'HGET HSET HDEL PEXPIRE', claims)
check('take', 'LTRIM LPUSH RPUSH', scratch)
check('take', 'SET DEL', returned)
check('take', 'CLIENT|UNBLOCK', 1)
check('poll', 'LRANGE LTRIM LLEN LPUSH', ordered_list)
check('poll', 'ZSCORE ZREM ZADD ZRANGE', timeout_set)
check('poll', 'ZREM ZADD LTRIM LPUSH RPUSH', scratch)
check('move', 'RPOPLPUSH', target, target)
check('move', 'BRPOPLPUSH', target, target, 0)
check('cancel and remove', 'ZREM ZCARD', timeout_set)
check('cancel and remove', 'LLEN LRANGE LREM LSET', ordered_list)
check('cancel and remove', 'LTRIM LREM', scratch)
check('requeue and remove of unconfirmed pops', 'HSCAN HGET HDEL HLEN', claims)
check('stats', 'ZCARD ZCOUNT ZRANGE', timeout_set)
check('stats', 'HLEN', claims)
check('stats', 'EXISTS', rebuild)
check('connections', 'CLIENT|SETNAME CLIENT|INFO CLIENT|KILL', 1)
return missing
