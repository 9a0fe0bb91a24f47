-- Settles deliveries and claims messages, in one call. A lost reply has no effect: the call is sent again with its token,
-- and gets the same reply, without the claims that no longer hold.
-- KEYS   1 target   2 inbox   3 messages: id -> record   4 leases: id, delivery number -> end, epoch ms
--        5 retries: id -> due, epoch ms   6 receipts: receiver -> token, results, claims
--        7 dead letters: id -> time, epoch ms   8 their content   9 control
-- ARGV   1 id of the receiver   2 token of this call: 16 bytes that begin with the time   3 most messages
--        4 policy of this receiver: see record.lua   5 most dead letters, or 0   6 their greatest age in ms, or 0
--        7 words: 'sweep', 'retries' (before new messages), 'inbox' (is to be put back)   8 a random number
--        9 how many deliveries to acknowledge, a; 10 to extend, e; 11 to settle in another way, s
--        12.. a members, e members, then s times: verb, member, ms, reason, error
-- Reply  {clock in ms, when the first lease may be ended and when the first retry is due, epoch ms or -1, how many payloads
--        are left, messages taken back from lost receivers, messages that became dead letters, dead letters removed, dead
--        letters to be sent, why no message was claimed or '', results of the settlements, refusals..., id, record, id,
--        record, ...}
--        Results: a character each, in order: '1' done, '0' no longer held, 'd' a dead letter now, 'r' refused; why is in
--        the refusals, which follow in a number that the results tell.
-- Clock  the server's (TIME)
-- Cost   O(log n) for each message
local queue = {
    target = KEYS[1], inbox = KEYS[2], messages = KEYS[3], leases = KEYS[4], retries = KEYS[5], receipts = KEYS[6],
    dead = KEYS[7], dead_messages = KEYS[8], control = KEYS[9],
}
local receiver, token, most, policy, words = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[7]
local acks, extends, others = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local _, _, lease = struct.unpack('>HHI4', policy)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
math.randomseed(tonumber(ARGV[8]))

local function message_of(error)
    return type(error) == 'table' and error.err or tostring(error)
end

local grace = 0

-- Nothing here ends the script: what is done is done.
local function reply(numbers, refused, results, refusals, claims)
    local lease_ends = redis.pcall('ZRANGE', queue.leases, 0, 0, 'WITHSCORES')[2]
    local retry = redis.pcall('ZRANGE', queue.retries, 0, 0, 'WITHSCORES')[2]
    local function number_of(count)
        return type(count) == 'number' and count or 0
    end
    local left = number_of(redis.pcall('LLEN', queue.target)) + number_of(redis.pcall('LLEN', queue.inbox))
    local to_send = number_of(redis.pcall('ZCOUNT', queue.dead, '-inf', '(0'))
    local out = {
        now, lease_ends and math.max(tonumber(lease_ends), grace) or -1, retry and tonumber(retry) or -1, left,
        numbers[1], numbers[2], numbers[3], to_send, refused, results,
    }
    for _, refusal in ipairs(refusals) do
        out[#out + 1] = refusal
    end
    for i, record in ipairs(claims.records) do
        out[#out + 1] = string.sub(claims.members[i], 1, 16)
        out[#out + 1] = record
    end
    return out
end

local receipt = redis.call('HGET', queue.receipts, receiver)
if receipt and string.sub(receipt, 1, 16) == token then
    local length = struct.unpack('>I4', receipt, 17)
    local results, claims = string.sub(receipt, 21, 20 + length), Claims.new(queue, token, policy, now, 0)
    local refusals = {}
    for _ in string.gmatch(results, 'r') do
        refusals[#refusals + 1] = 'it was refused to an earlier try of this call'
    end
    for at = 21 + length, #receipt, 20 do
        local member = string.sub(receipt, at, at + 19)
        local id = string.sub(member, 1, 16)
        local record = redis.call('ZSCORE', queue.leases, member) and redis.call('HGET', queue.messages, id)
        if record then
            Claims.add(claims, id, record)
        end
    end
    return reply({0, 0, 0}, '', results, refusals, claims)
end
-- The first write. It needs no memory, and after it no command is refused for lack of memory.
redis.call('HDEL', queue.receipts, receiver)

local results, refusals, died = {}, {}, 0
local function settled(count, ok, done)
    if ok then
        for _, result in ipairs(done) do
            results[#results + 1] = result
        end
    else
        for _ = 1, count do
            results[#results + 1] = 'r'
            refusals[#refusals + 1] = message_of(done)
        end
    end
end
local at = 12
if acks > 0 then
    settled(acks, pcall(acknowledge, queue, ARGV, at, at + acks - 1))
    at = at + acks
end
if extends > 0 then
    settled(extends, pcall(extend, queue, ARGV, at, at + extends - 1, string.format('%.0f', now + lease)))
    at = at + extends
end
for _ = 1, others do
    local ok, result = pcall(settle, queue, now, ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3], ARGV[at + 4])
    ok, result = ok and type(result) == 'string', result
    died = died + (result == 'd' and 1 or 0)
    settled(1, ok, ok and {result} or result)
    at = at + 5
end

local claims = Claims.new(queue, token, policy, now, now + lease)
local recovered, trimmed = 0, 0
local ok, refused = pcall(function()
    grace = look_at_the_clock(queue, now, lease)
    if now >= grace then
        local taken, dead = recover(queue, now)
        recovered, died = taken, died + dead
    end
    if string.find(words, 'sweep') then
        sweep(queue, now)
    end
    if died > 0 or string.find(words, 'sweep') then
        trimmed = trim(queue, now, tonumber(ARGV[5]), tonumber(ARGV[6]))
    end
    if string.find(words, 'inbox') then
        for _ = 1, 1000 do
            if not redis.call('RPOPLPUSH', queue.inbox, queue.target) then
                break
            end
        end
    end
    if most > 0 then
        local first = math.ceil(most / 2)
        if most == 1 and not string.find(words, 'retries') then
            first = 0
        end
        Claims.retries(claims, first, now)
        Claims.payloads(claims, queue.inbox, most - #claims.members)
        Claims.payloads(claims, queue.target, most - #claims.members)
        if #claims.members < most then
            Claims.retries(claims, most - #claims.members, now)
        end
    end
end)
results = table.concat(results)
-- Without this permission, a lost reply costs a lease. Without any of these, nothing is claimed.
redis.pcall('HSET', queue.receipts, receiver, token .. struct.pack('>I4', #results) .. results .. table.concat(claims.members))
return reply({recovered, died, trimmed}, ok and '' or message_of(refused), results, refusals, claims)
