-- A part of every script whose reply begins with strings that others wrote; scripts.rs says why these need a number in front.
-- Provides  with_count

-- Returns {number of strings, string, string, ...}.
local function with_count(strings)
    table.insert(strings, 1, #strings)
    return strings
end
