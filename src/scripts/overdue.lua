-- Tells which queues have entries that have been due for a while.
-- KEYS   timeout sets
-- ARGV   1 for how long, ms
-- Reply  {the server's clock in microseconds, for each of them 1 or 0}
-- Clock  the server's (TIME)
-- Cost   O(log n) each
local time = redis.call('TIME')
local reply = {time[1] * 1000000 + time[2]}
local till = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1])
for n, timeout_set in ipairs(KEYS) do
    local due = redis.pcall('ZCOUNT', timeout_set, '-inf', till)
    if type(due) == 'number' then
        reply[n + 1] = due > 0 and 1 or 0
    elseif string.find(due.err, 'wrong kind of value', 1, true) then
        -- A key of another type has none. Its transfer says so.
        reply[n + 1] = 0
    else
        return due
    end
end
return reply
