-- The clocks of a script with a time budget. A part of such scripts; it comes first, because the time starts here.
-- Provides  now, spent

local function server_micros()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- The server's clock at the start, in microseconds.
local now = server_micros()

-- Since Redis 7.2, and in Valkey, TIME stands still inside a script; these servers have os.clock instead.
local has_cpu_clock, cpu_clock = pcall(function() return os.clock end)
local started = has_cpu_clock and cpu_clock() * 1000000 or now

-- Microseconds since the start.
local function spent()
    return (has_cpu_clock and cpu_clock() * 1000000 or server_micros()) - started
end
