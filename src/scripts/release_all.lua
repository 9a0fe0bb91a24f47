-- Gives what receivers have left back to the target, bare, where every taker finds it: what waits for a
-- retry; and, if no receiver was active in the last 10 s, the inbox and the messages whose leases have ended.
-- Up to 1,000 a call, and no more than 4 MB unless one of them is longer.
-- KEYS   1 target   2 inbox   3 messages   4 leases   5 retries   6 control   7 scratch   8 jobs   9 notes
--        10 more notes
-- ARGV   1 ms for which receivers must have given no sign of life, or 0
-- Reply  {how many went back, how many were looked at: if it is more than 0, there may be others}; or an
--        error if the server refuses all that this call has looked at
-- Clock  the server's (TIME)
-- Cost   O(log n) for each
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen, silent = unpack(redis.call('HMGET', KEYS.control, 'seen', 'silent'))
seen, silent = tonumber(seen), tonumber(silent)
if tonumber(ARGV[1]) > 0 then
    if not seen then
        -- Nothing is known of receivers. If they have left something, its time begins now.
        if redis.call('LLEN', KEYS.inbox) + redis.call('HLEN', KEYS.messages) > 0 then
            redis.call('HSET', KEYS.control, 'seen', string.format('%.0f', now))
        end
        return {0, 0}
    elseif now - seen < tonumber(ARGV[1]) then
        return {0, 0}
    elseif not silent or silent <= seen or silent > now then
        -- The server may have been away, or its clock was set: receivers that live have half a minute to show
        -- it.
        redis.call('HSET', KEYS.control, 'silent', string.format('%.0f', now))
        return {0, 0}
    elseif now - silent < 30000 then
        return {0, 0}
    end
end
local MOST_BYTES = 4194304
-- Receivers give a sign of life every 6 s. Those that live claim what is in the inbox, also what this script
-- has just pushed: a blocked one has moved it there. And they extend leases that have ended during an outage,
-- or take them back.
local ALIVE = 10000 -- ms
local is_alive = math.abs(now - (seen or silent or now)) < ALIVE

-- The last ones first: what a later call pushes goes in front of them.
local retries = redis.call('ZRANGE', KEYS.retries, 0, 499, 'REV')
local ended = redis.call('ZRANGE', KEYS.leases, string.format('%.0f', now), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 500)
local waiting = redis.call('LLEN', KEYS.inbox)
if is_alive then
    if not seen and not silent and #ended + waiting > 0 then
        -- The signs of life were deleted by hand. Receivers that live show it until the next call, and this
        -- is not one.
        redis.call('HSET', KEYS.control, 'silent', string.format('%.0f', now))
    end
    ended, waiting = {}, 0
end
if #retries == 0 and #ended == 0 and waiting == 0 then
    return {0, 0}
end
redis.call('LLEN', KEYS.target)
redis.call('HLEN', KEYS.messages)
ensure_permitted({'ZREM'}, {'LPUSH'})
redis.call('HDEL', KEYS.messages, '') -- changes nothing, but fails without the permission
local released, looked_at, bytes, refused = 0, 0, 0, nil

-- Gives back what members of the leases or retries name, if that is still there. Those of the leases name
-- deliveries: an id, and a delivery number. What the server refuses stays. It is in the way of others only if
-- it is longer than a call may read, or if there are 500 of it. Returns whether that was all of it.
local function release(members, are_deliveries)
    for _, member in ipairs(members) do
        local id = are_deliveries and string.sub(member, 1, 16) or member
        local record = redis.call('HGET', KEYS.messages, id)
        bytes = bytes + #(record or '')
        if bytes > MOST_BYTES and (looked_at > 0 or refused) then
            return false
        end
        local is_other = are_deliveries and record and string.sub(record, 2, 5) ~= string.sub(member, 17)
        local is_refused
        -- Once, also if it is in both sets.
        if record and is_readable(record) and not is_other and not end_cancelled(record, id) then
            is_refused = make_ready(record, id, counts(record) ~= NEVER)
            if not is_refused then
                released = released + 1
                redis.call('HDEL', KEYS.messages, id)
            end
        end
        if is_refused then
            refused = refused or is_refused
        elseif are_deliveries then
            redis.call('ZREM', KEYS.leases, member)
        else
            redis.call('ZREM', KEYS.retries, member)
        end
        looked_at = looked_at + (is_refused and 0 or 1)
    end
    return true
end

if not release(retries, false) or not release(ended, true) then
    return looked_at == 0 and refused or {released, looked_at}
end
for _ = 1, math.min(waiting, 1000) do
    local payload = bytes <= MOST_BYTES and redis.call('RPOPLPUSH', KEYS.inbox, KEYS.target)
    if not payload then
        break
    end
    released, looked_at, bytes = released + 1, looked_at + 1, bytes + #payload
end
return looked_at == 0 and refused or {released, looked_at}
