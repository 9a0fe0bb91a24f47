-- Reads a part of a list whose bytes are bounded. A part of the scripts that read lists in pages.
-- Provides  add_page

-- Adds to the reply what a list of this length has from an index on, towards its head or its tail: up to so
-- many elements, and about a megabyte, but the first `least` of them however long they are. `read` calls
-- LRANGE with two indexes. Returns the reply.
local function add_page(reply, length, read, at, is_back, most, least)
    local BYTES, count_read = 1048576, 0
    -- The length of the elements is known when they have been read: first a few, then eight times as many.
    local bytes, count, longest = 0, 4, 1
    while at >= 0 and at < length and count_read < most and (bytes < BYTES or count_read < least) do
        count = math.min(count, most - count_read, math.max(1, math.floor((BYTES - bytes) / longest)))
        local chunk
        if is_back then
            chunk = read(math.max(0, at + 1 - count), at)
            at = at - #chunk
        else
            chunk = read(at, at + count - 1)
            at = at + #chunk
        end
        for i = 1, #chunk do
            local element = chunk[is_back and #chunk + 1 - i or i]
            reply[#reply + 1] = element
            bytes, longest = bytes + #element, math.max(longest, #element)
        end
        count_read, count = count_read + #chunk, math.min(8 * count, 256)
    end
    return reply
end
