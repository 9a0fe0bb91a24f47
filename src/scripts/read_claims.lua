-- Reads claims, oldest first.
-- KEYS   1 claims
-- ARGV   1 least age in ms   2 most claims   3 'payloads' | 'ids'
-- Reply  {{age in ms, id, kind, what was popped ...}, ...}; or {id, id, ...}
-- Clock  the server's (TIME)
-- Cost   O(n log n) in the number of claims, and the size of those that are read
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The ids are in the order of time.
local ids = redis.call('HKEYS', KEYS[1])
table.sort(ids)
local claims = {}
for _, id in ipairs(ids) do
    if #claims == tonumber(ARGV[2]) then
        break
    end
    local kind, popped_at, popped = stored_claim(KEYS[1], id)
    if kind and now - popped_at >= tonumber(ARGV[1]) then
        if ARGV[3] == 'ids' then
            claims[#claims + 1] = id
        else
            claims[#claims + 1] = {now - popped_at, id, kind}
            for _, element in ipairs(popped) do
                table.insert(claims[#claims], element)
            end
        end
    end
end
return claims
