-- Gives what receivers have left back to the target, bare, where every taker finds it: the inbox, what waits for a retry, and
-- messages whose leases have ended. Up to 1,000 a call.
-- KEYS   1 target   2 inbox   3 messages   4 leases   5 retries   6 control   7 scratch
-- ARGV   1 ms for which receivers must have given no sign of life, or 0
-- Reply  how many went back
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if tonumber(ARGV[1]) > 0 then
    local seen, silent = unpack(redis.call('HMGET', KEYS[6], 'seen', 'silent'))
    seen, silent = tonumber(seen), tonumber(silent)
    if not seen then
        -- Nothing is known of receivers. If they have left something, its time begins now.
        if redis.call('LLEN', KEYS[2]) + redis.call('HLEN', KEYS[3]) > 0 then
            redis.call('HSET', KEYS[6], 'seen', string.format('%.0f', now))
        end
        return 0
    elseif now - seen < tonumber(ARGV[1]) then
        return 0
    elseif not silent or silent <= seen or silent > now then
        -- The server may have been away, or its clock was set: receivers that live have half a minute to show it.
        redis.call('HSET', KEYS[6], 'silent', string.format('%.0f', now))
        return 0
    elseif now - silent < 30000 then
        return 0
    end
end
-- The last ones first: what a later call pushes goes in front of them.
local ids, members = {}, {}
local ended = redis.call('ZRANGE', KEYS[4], string.format('%.0f', now), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 500)
for i = #ended, 1, -1 do
    local member = ended[i]
    members[#members + 1] = member
    local id = string.sub(member, 1, 16)
    local record = redis.call('HGET', KEYS[3], id)
    if record and string.sub(record, 2, 5) == string.sub(member, 17) then
        ids[#ids + 1] = id
    end
end
for _, id in ipairs(redis.call('ZRANGE', KEYS[5], -500, -1)) do
    ids[#ids + 1] = id
end
local waiting = redis.call('LLEN', KEYS[2])
if #ids == 0 and waiting == 0 then
    return 0
end
redis.call('LLEN', KEYS[1])
ensure_permitted(KEYS[7], {'ZREM', 'HDEL'}, {'LPUSH'})
local released = 0
for i = #ids, 1, -1 do
    local record = redis.call('HGET', KEYS[3], ids[i])
    -- Once, also if it is in both sets.
    if record and is_readable(record) then
        redis.call('LPUSH', KEYS[1], payload_in(record))
        redis.call('HDEL', KEYS[3], ids[i])
        released = released + 1
    end
    redis.call('ZREM', KEYS[5], ids[i])
end
for _, member in ipairs(members) do
    redis.call('ZREM', KEYS[4], member)
end
for _ = 1, math.min(waiting, 1000) do
    if not redis.call('RPOPLPUSH', KEYS[2], KEYS[1]) then
        break
    end
    released = released + 1
end
return released
