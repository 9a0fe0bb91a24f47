-- Moves due entries to the target, in the order of their due times. A part of transfer.lua.
-- Provides  SLICE, is_progress, move
-- Uses      a search, walks and READ_BYTES, see transfer/find.lua; take_out_one of transfer/few.lua,
--           payload_of of parts/entry.lua, spent of parts/clock.lua
local SLICE = 100 -- entries that are moved before the clock is read again
local LEAST_MOVED = 2000 -- entries that a call moves whatever the clock says, unless they are long or need an LREM each

-- Whether a call has moved enough entries to end, if the clock says that its time is up.
local function is_progress(search, count)
    return count >= LEAST_MOVED or count * search.entry_size >= READ_BYTES
end

-- Moves the first entries of the search, up to `most`, until `time` is up. `missing` says what to do with an
-- entry that the search has not found:
--   'absent'     the list does not have it: it is moved like the others
--   'searched'   the list may have it: it is moved by itself, and an LREM removes it from the list
--   nil          it is not moved, nor is any entry after it
-- Returns how many entries are gone, how many of these went to the quarantine, and how many an LREM has
-- found.
local function move(search, most, time, missing)
    local due, position = search.due, search.position
    local slice = math.max(1, math.min(SLICE, math.floor(READ_BYTES / search.entry_size)))
    local gone, quarantined, listed, count = 0, 0, 0, math.min(#due, most)
    local least_walks = math.max(1, walks(search.length))
    while gone < count and (missing or position[gone + 1]) do
        local first, last, payloads, malformed = gone + 1, gone, {}, {}
        -- An entry that needs an LREM is moved by itself, because that takes long.
        repeat
            last = last + 1
            local goes_on = missing == 'absent' or position[last] and position[last + 1]
        until last == count or last == first + slice - 1 or not goes_on
        for n = first, last do
            local payload = payload_of(due[n])
            if payload then
                payloads[#payloads + 1] = payload
            else
                malformed[#malformed + 1] = redis.call('ZSCORE', KEYS.timeout_set, due[n])
                malformed[#malformed + 1] = due[n]
            end
        end
        if #payloads > 0 then
            redis.call('RPUSH', KEYS.target, unpack(payloads))
        end
        if #malformed > 0 then
            redis.call('RPUSH', KEYS.quarantine, unpack(malformed))
        end
        redis.call('ZREMRANGEBYRANK', KEYS.timeout_set, 0, last - first)
        local needs_search = missing == 'searched' and not position[first]
        if needs_search then
            listed = listed + take_out_one(search.length, due[first])
        end
        gone, quarantined = last, quarantined + #malformed / 2
        if spent() >= time and (needs_search and gone >= least_walks or is_progress(search, gone)) then
            break
        end
    end
    return gone, quarantined, listed
end
