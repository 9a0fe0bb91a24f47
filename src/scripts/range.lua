-- Reads a page of a list. What elements others wrote may look like an announcement to the client library, so
-- this is a script.
-- KEYS   1 list: target, ordered list or quarantine
-- ARGV   1 index of the first element to read; if it is behind the end, or -1, that of the last one
--        2 'on', towards the tail | 'back', towards the head   3 most elements   4 elements that are read however long they are
-- Reply  {length of the list, element, element, ...} in the order of the reading
-- Cost   O(1) for each; and a walk from the nearer end for each of a few LRANGE. Up to 1,000 elements, and 1 MB, unless they are longer
--        than those before
local BYTES = 1048576
local at, is_back, most, least = tonumber(ARGV[1]), ARGV[2] == 'back', tonumber(ARGV[3]), tonumber(ARGV[4])
local length = redis.call('LLEN', KEYS.list)
if at < 0 or is_back and at >= length then
    at = length - 1
end
-- The length of the elements is known when they have been read: first a few, then eight times as many.
local reply, bytes, count, longest = {length}, 0, 4, 1
while at >= 0 and at < length and #reply <= most and (bytes < BYTES or #reply <= least) do
    count = math.min(count, most + 1 - #reply, math.max(1, math.floor((BYTES - bytes) / longest)))
    local chunk
    if is_back then
        chunk = redis.call('LRANGE', KEYS.list, math.max(0, at + 1 - count), at)
        at = at - #chunk
    else
        chunk = redis.call('LRANGE', KEYS.list, at, at + count - 1)
        at = at + #chunk
    end
    for i = 1, #chunk do
        local element = chunk[is_back and #chunk + 1 - i or i]
        reply[#reply + 1] = element
        bytes, longest = bytes + #element, math.max(longest, #element)
    end
    count = count * 8
end
return reply
