-- Lists the ids of claims, a part of them.
-- KEYS   1 claims
-- ARGV   1 the cursor of the last reply, or 0
-- Reply  {cursor, or '0' at the end, id, id, ...}
-- Cost   O(1) for each of about a hundred
local scanned = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 100)
local reply = {scanned[1]}
for i = 1, #scanned[2], 2 do
    reply[#reply + 1] = scanned[2][i]
end
return reply
