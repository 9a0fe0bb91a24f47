-- The clock of a script with a time budget. A part of such scripts; it comes early, because the time starts
-- here.
-- Provides  spent
-- Uses      now of parts/now.lua

-- Since Redis 7.2, and in Valkey, TIME stands still inside a script; these servers have os.clock instead.
local has_cpu_clock, cpu_clock = pcall(function() return os.clock end)
local started = has_cpu_clock and cpu_clock() * 1000000 or now

-- Microseconds since the start.
local function spent()
    if has_cpu_clock then
        return cpu_clock() * 1000000 - started
    end
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2] - started
end
