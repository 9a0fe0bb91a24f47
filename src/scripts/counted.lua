-- In front of every script that answers with strings which others wrote; the reason is in script.rs.
local function counted(strings)
    table.insert(strings, 1, #strings)
    return strings
end
