-- Lists the ids of claims, a part of them.
-- KEYS   1 claims
-- ARGV   1 the cursor of the last reply, or 0
-- Reply  {cursor, or '0' at the end, id, id, ...}
-- Cost   O(1) for each: up to about a hundred, and about 1 MB, as the server copies the claims with their ids
local function read(cursor, count)
    return redis.call('HSCAN', KEYS.claims, cursor, 'COUNT', count)
end
local found, cursor = scan(read, ARGV[1], 100)
local reply = {cursor}
for i = 1, #found, 2 do
    reply[#reply + 1] = found[i]
end
return reply
