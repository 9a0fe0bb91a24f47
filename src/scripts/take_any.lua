-- Pops payloads of several lists without blocking: of the first one as many as it has, then of the next one.
-- A lost reply loses none of them.
-- KEYS   the targets, each followed by the claims of its queue; and one that is absent
-- ARGV   1 'LPOP' | 'RPOP'   2 most payloads, at least 1   3 ms for which claims are kept   4 id of this pop
--        5... for each target, the id of an earlier pop whose reply has arrived, or ''
-- Reply  {number of a target, how many payloads, payload, ..., number of the next target that had any, ...}
--        in the order of the pops
-- Cost   O(1) per payload and per list. The payload with which 1 MB is exceeded is the last
-- What one list needs is checked before it is popped from. If the server refuses a later list, the reply has
-- what was popped until then.
local BYTES = 1048576
local at_head, most, id = ARGV[1] == 'LPOP', tonumber(ARGV[2]), ARGV[4]
local reply, taken, bytes = {}, 0, 0

local function add(n, payloads)
    reply[#reply + 1], reply[#reply + 2] = n, #payloads
    for i = 1, #payloads do
        reply[#reply + 1] = payloads[i]
    end
end

-- Returns the next payloads of a list, in the order of the pops; or the server's error.
local function next_payloads(target)
    local payloads, count, longest = {}, 16, 1
    repeat
        local read = #payloads
        count = math.min(count, most - taken - read, math.max(1, math.floor((BYTES - bytes) / longest)))
        local chunk
        if at_head then
            chunk = redis.pcall('LRANGE', target, read, read + count - 1)
        else
            chunk = redis.pcall('LRANGE', target, -read - count, -read - 1)
        end
        if chunk.err then
            return chunk
        end
        for i = 1, #chunk do
            local payload = chunk[at_head and i or #chunk + 1 - i]
            if bytes <= BYTES then
                payloads[#payloads + 1] = payload
            end
            bytes, longest = bytes + #payload, math.max(longest, #payload)
        end
        local is_end = #chunk < count
        count = math.min(8 * count, 64)
    until is_end or taken + #payloads == most or bytes > BYTES
    return payloads
end

-- Claims payloads of a list, and pops them. Returns the server's error.
local function pop(target, claims, payloads, time)
    local claimed = redis.pcall('HSET', claims, id, cmsgpack.pack({ARGV[1], time, payloads}))
    if type(claimed) == 'table' and claimed.err then
        return claimed
    end
    -- Without this permission, claims that a dead process left are kept indefinitely.
    redis.pcall('PEXPIRE', claims, ARGV[3])
    local popped
    if at_head then
        popped = redis.pcall('LTRIM', target, #payloads, -1)
    else
        popped = redis.pcall('LTRIM', target, 0, -#payloads - 1)
    end
    if popped.err then
        redis.call('HDEL', claims, id)
        return popped
    end
end

-- What an earlier try of this pop took.
for n = 1, #KEYS / 2 do
    local copy = redis.call('HGET', KEYS[2 * n], id)
    if copy then
        add(n, cmsgpack.unpack(copy)[3])
    end
end
if #reply > 0 then
    return reply
end
-- These are the first writes. HDEL needs no memory, so takers can empty a server that is full.
for n = 1, #KEYS / 2 do
    redis.call('HDEL', KEYS[2 * n], ARGV[4 + n])
end
local time = redis.call('TIME')
time = time[1] * 1000 + math.floor(time[2] / 1000)
for n = 1, #KEYS / 2 do
    local payloads = next_payloads(KEYS[2 * n - 1])
    local refused = payloads.err and payloads
    if not refused and #payloads > 0 then
        refused = pop(KEYS[2 * n - 1], KEYS[2 * n], payloads, time)
    end
    if refused then
        return taken > 0 and reply or refused
    end
    if #payloads > 0 then
        add(n, payloads)
        taken = taken + #payloads
    end
    if taken == most or bytes > BYTES then
        break
    end
end
return reply
