-- Reads a hash in parts whose size is known, whatever the length of its values. A part of the scripts that do
-- so.
-- Provides  scan

-- Reads about `most` fields from the cursor on, and about a megabyte, unless one value is longer. `read`
-- calls HSCAN with a cursor and a count. Returns a list of fields and values, and the next cursor, which is
-- '0' at the end.
local function scan(read, cursor, most)
    local BYTES, TRIES = 1048576, 200
    local found, bytes, count = {}, 0, 1
    for _ = 1, TRIES do
        local scanned = read(cursor, count)
        cursor = scanned[1]
        for _, part in ipairs(scanned[2]) do
            found[#found + 1] = part
            bytes = bytes + #part
        end
        local fields = #found / 2
        if cursor == '0' or fields >= most or bytes >= BYTES then
            break
        elseif fields == 0 then
            -- The server keeps a large table for a while after most of it was deleted.
            count = math.min(2 * count, 1000)
        else
            -- As many as will fit, if the next ones are as long.
            count = math.max(1, math.min(most - fields, math.floor((BYTES - bytes) * fields / bytes)))
        end
    end
    return found, cursor
end
