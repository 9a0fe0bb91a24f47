-- Reads the content of dead letters. A part of the scripts that do so.
-- Provides  letter_of

-- {reason, error, failures, losses, first claim and death in epoch ms, delivery number, payload}, and the
-- data of a job that has any; nil if there is none, or if another program wrote it.
local function letter_of(content)
    local ok, letter = pcall(cmsgpack.unpack, content or '')
    if not ok or type(letter) ~= 'table' or (#letter ~= 8 and #letter ~= 9) then
        return nil
    end
    for i, part in ipairs(letter) do
        if type(part) ~= (i > 2 and i < 8 and 'number' or 'string') then
            return nil
        end
    end
    return letter
end
