-- Reads a hash in parts whose size is known, whatever the length of its values. A part of the scripts that do
-- so.
-- Provides  scan

-- Reads about `most` fields from the cursor on, and about a megabyte, unless one value is longer; fewer, once
-- `is_late` says so, if there is such a function. `read` calls HSCAN with a cursor and a count. Returns a
-- list of fields and values, and the next cursor, which is '0' at the end.
local function scan(read, cursor, most, is_late)
    local BYTES, TRIES, MOST = 1048576, 200, 32
    local found, bytes, count, longest = {}, 0, 1, 1
    for _ = 1, TRIES do
        local scanned = read(cursor, count)
        cursor = scanned[1]
        for _, part in ipairs(scanned[2]) do
            found[#found + 1] = part
            bytes, longest = bytes + #part, math.max(longest, #part)
        end
        local fields = #found / 2
        if cursor == '0' or fields >= most or bytes >= BYTES or fields > 0 and is_late and is_late() then
            break
        elseif fields == 0 then
            -- The server keeps a large table for a while after most of it was deleted.
            count = math.min(2 * count, 1000)
        else
            -- As many as will fit, if none of the next ones is longer. If they are, there are few of them.
            count = math.max(1, math.min(most - fields, MOST, math.floor((BYTES - bytes) / (2 * longest))))
        end
    end
    return found, cursor
end
