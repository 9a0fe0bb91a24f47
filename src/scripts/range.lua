-- Reads a page of a list. What elements others wrote may look like an announcement to the client library, so
-- this is a script.
-- KEYS   1 list: target or ordered list
-- ARGV   1 index of the first element to read; if it is behind the end, or -1, that of the last one
--        2 'on', towards the tail | 'back', towards the head   3 most elements
--        4 elements that are read however long they are
-- Reply  {length of the list, element, element, ...} in the order of the reading
-- Cost   O(1) for each; and a walk from the nearer end for each of a few LRANGE. Up to 1,000 elements, and 1
--        MB, unless they are longer than those before
local at, is_back = tonumber(ARGV[1]), ARGV[2] == 'back'
local length = redis.call('LLEN', KEYS.list)
if at < 0 or is_back and at >= length then
    at = length - 1
end
local function read(first, last)
    return redis.call('LRANGE', KEYS.list, first, last)
end
return add_page({length}, length, read, at, is_back, tonumber(ARGV[3]), tonumber(ARGV[4]))
