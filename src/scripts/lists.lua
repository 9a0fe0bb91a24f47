-- Work on lists in chunks: in front of every script that appends or removes many elements.
local MISSES = 12 -- up to this many entries are removed from the list one by one, more in one pass
local CHUNK = 1000 -- elements per LRANGE, and per unpack, which fails at 8,000

local function push(key, values)
    for i = 1, #values, CHUNK do
        redis.call('RPUSH', key, unpack(values, i, math.min(i + CHUNK - 1, #values)))
    end
end

-- Removes entries from the list, wherever they are, each as often as it is named; one that is not there is no error.
local function remove_from_list(list, entries)
    local wanted, left = {}, #entries
    for _, entry in ipairs(entries) do
        wanted[entry] = (wanted[entry] or 0) + 1
    end
    local function is_wanted(entry)
        local times = wanted[entry]
        if times then
            wanted[entry] = times > 1 and times - 1 or nil
            left = left - 1
        end
        return times
    end
    -- Entries offered in order of their due times are the list's first.
    local start, going = 0, true
    while going and left > 0 do
        local chunk = redis.call('LRANGE', list, start, start + math.min(left, CHUNK) - 1)
        going = #chunk > 0
        for _, entry in ipairs(chunk) do
            if not is_wanted(entry) then
                going = false
                break
            end
            start = start + 1
        end
    end
    if start > 0 then
        redis.call('LTRIM', list, start, -1)
    end
    if left > 0 and left <= MISSES then
        for entry, times in pairs(wanted) do
            redis.call('LREM', list, times, entry)
        end
    elseif left > 0 then
        -- All of them become equal to the first one, and then go in one pass.
        local found, at, same = 0, 0, nil
        repeat
            local chunk = redis.call('LRANGE', list, at, at + CHUNK - 1)
            for i, entry in ipairs(chunk) do
                if is_wanted(entry) then
                    same = same or entry
                    redis.call('LSET', list, at + i - 1, same)
                    found = found + 1
                end
            end
            at = at + CHUNK
        until left == 0 or #chunk < CHUNK
        if found > 0 then
            redis.call('LREM', list, found, same)
        end
    end
end

-- Removes each entry from both structures.
local function remove_entries(timeout_set, list, entries)
    for i = 1, #entries, CHUNK do
        redis.call('ZREM', timeout_set, unpack(entries, i, math.min(i + CHUNK - 1, #entries)))
    end
    remove_from_list(list, entries)
end
