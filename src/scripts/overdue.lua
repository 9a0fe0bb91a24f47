-- Tells which queues have entries that have been due for a while, and since when.
-- KEYS   timeout sets
-- ARGV   1 for how long, ms
-- Reply  {the server's clock in microseconds, for each of them the score of its head, or false if that is not
--        overdue}
-- Clock  the server's (TIME)
-- Cost   O(log n) each
local time = redis.call('TIME')
local reply = {time[1] * 1000000 + time[2]}
local till = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1])
for n, timeout_set in ipairs(KEYS) do
    local due = redis.pcall('ZCOUNT', timeout_set, '-inf', till)
    if type(due) == 'number' then
        reply[n + 1] = false
        if due > 0 then
            -- With the entry, which may be long: so only now.
            local head = redis.pcall('ZRANGE', timeout_set, 0, 0, 'WITHSCORES')
            if head.err then
                return head
            end
            reply[n + 1] = head[2]
        end
    elseif string.find(due.err, 'wrong kind of value', 1, true) then
        -- A key of another type has none. Its transfer says so.
        reply[n + 1] = false
    else
        return due
    end
end
return reply
