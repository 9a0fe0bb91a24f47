-- Reads claims.
-- KEYS   1 claims
-- ARGV   1 least age in ms   2 'payloads' | 'ids'   3.. ids, up to 100
-- Reply  {how many of these it looked at, {age in ms, id, kind, what was popped ...}, ...}; or {how many, id,
--        id, ...}
-- Clock  the server's (TIME)
-- Cost   O(1) for each. It ends behind the one with which 1 MB is exceeded
local BYTES = 1048576
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply, bytes = {0}, 0
for i = 3, #ARGV do
    if bytes > BYTES then
        break
    end
    reply[1] = reply[1] + 1
    local id = ARGV[i]
    local kind, popped_at, popped = stored_claim(id)
    for _, element in ipairs(popped or {}) do
        bytes = bytes + #element
    end
    if kind and now - popped_at >= tonumber(ARGV[1]) then
        if ARGV[2] == 'ids' then
            reply[#reply + 1] = id
        else
            local claim = {now - popped_at, id, kind}
            for _, element in ipairs(popped) do
                claim[#claim + 1] = element
            end
            reply[#reply + 1] = claim
        end
    end
end
return reply
