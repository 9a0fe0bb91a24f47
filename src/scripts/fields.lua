-- Lists the fields of a hash, a part of them.
-- KEYS   1 hash: claims, or records of schedules
-- ARGV   1 the cursor of the last reply, or 0
-- Reply  {cursor, or '0' at the end, field, field, ...}
-- Cost   O(1) for each: up to about a hundred, and about 1 MB, as the server copies the values with their
--        fields
local function read(cursor, count)
    return redis.call('HSCAN', KEYS.hash, cursor, 'COUNT', count)
end
local found, cursor = scan(read, ARGV[1], 100)
local reply = {cursor}
for i = 1, #found, 2 do
    reply[#reply + 1] = found[i]
end
return reply
