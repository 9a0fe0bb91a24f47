-- Forgets the ids of jobs that were moved. A part of transfer.lua.
-- Provides  forget, moved_runs
local PLAIN = string.byte('p') -- the kind of a field
local moved_runs = 0 -- jobs that are runs of schedules, by their ids

-- Forgets the ids of the first `count` of these entries. If that is refused, a sweep finds them.
local function forget(entries, count)
    local known = redis.pcall('HLEN', KEYS.jobs)
    if type(known) ~= 'number' or known == 0 then
        return
    end
    for first = 1, count, 1000 do
        local ids, moved = {}, {}
        for n = first, math.min(first + 999, count) do
            ids[#ids + 1] = string.sub(entries[n], 2, 1 + (string.byte(entries[n]) or 0))
        end
        local fields = redis.pcall('HMGET', KEYS.jobs, unpack(ids))
        for n, id in ipairs(ids) do
            -- The id may be that of a later job, if this one was away for a time. With what travels with a
            -- job, its field waits for the claim. Two times are before the entry: parts/field.lua.
            if fields[n] and string.byte(fields[n]) == PLAIN and string.sub(fields[n], 14) == entries[first + n - 1] then
                moved[#moved + 1] = id
                if string.find(id, '@%d+$') then
                    moved_runs = moved_runs + 1
                end
            end
        end
        if #moved > 0 then
            redis.pcall('HDEL', KEYS.jobs, unpack(moved))
        end
    end
end
