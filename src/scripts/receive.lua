-- Settles deliveries and claims messages, in one call. A lost reply has no effect: the call is sent again
-- with its token, and gets the same reply, without the claims that no longer hold. The reply may have been
-- too long for the link: so it has the first records only, and names the other claims. A try that arrives
-- after a later call has no effect.
-- KEYS   1 target   2 inbox   3 messages: id -> record   4 leases: id, delivery number -> end, epoch ms
--        5 retries: id -> due, epoch ms   6 receipts: receiver -> token, clock, results, claims
--        7 dead letters: id -> time, epoch ms   8 dead messages: their content   9 control
--        10 channel of retries   11 timeout set   12 jobs   13 notes: what travels with them   14 more notes
-- ARGV   1 id of the receiver   2 token of this call: 16 bytes that begin with the time
--        3 policy of this receiver: see record.lua
--        4 words: 'sweep', 'retries' (before new messages), 'inbox' (is to be put back), 'send' (dead
--        letters)
--        5 eleven numbers, big-endian: seven of four bytes, then four of eight. Most messages; how many
--        deliveries to acknowledge, a; to extend, e; to settle in another way, s; how many of those to
--        acknowledge are jobs that hold their ids, h; of those to extend, j; a random number; most dead
--        letters, or 0; their greatest age in ms, or 0; what the clock showed when this receiver was last
--        answered, epoch ms, or 0; how many ms later it meant to call
--        6.. a members, e members, then s times: verb, member, ms, reason (of an extension, the id that is
--        held), error; then h times: its number among the a, id; then j times: its number among the e, id
-- Reply  {numbers, why no message was claimed or '', why a message did not become a dead letter or '',
--        results of the settlements, refusals..., id, record, id, record, ... member of the leases, '', ...
--        for claims whose records are not sent}
--        Thirteen numbers of eight bytes, big-endian: clock in ms, when the first lease may be ended and when
--        the first retry is due, epoch ms or -1, 1 if claims have left payloads or 0, messages taken back
--        from lost receivers, messages that became dead letters, dead letters removed, dead letters to be
--        sent, messages whose records are gone, messages of a later version, jobs that have expired, 1 if
--        keys do not agree or 0, ms for which no more may be claimed or -1
--        Results: a character each, in order: '1' done, '0' no longer held, 'd' a dead letter now, 'c'
--        extended, and to be cancelled, 'r' refused; why is in the refusals, one for each `r` in the results.
-- Clock  the server's (TIME)
-- Cost   O(log n) for each message
-- What this call finds out.
local noted = {
    is_retry_earlier = false, -- whether the first retry is due earlier than before this call
    has_room = false, -- whether there were too many messages in flight before this call, and are no longer
    gone = 0, -- messages that had a lease or a retry, and whose records were deleted by hand
    newer = 0, -- messages of a later version of redelay that were due
    expired = 0, -- jobs that expired before they were claimed
    buried = 0, -- those of them that became dead letters
    unburied = false, -- why the last message that should have become a dead letter did not
}
-- The last arguments: of those to acknowledge, and of those to extend, the ids that they hold.
local extended = #ARGV - 2 * extends_with_ids + 1
local acknowledged = extended - 2 * acks_with_ids
math.randomseed(seed)

-- What is looked at once a call: when the first lease may be ended, and when the first retry is due.
local lease_ends, retry_due

local function first_lease()
    return tonumber(redis.call('ZRANGE', KEYS.leases, '0', '0', 'WITHSCORES')[2])
end

local function first_retry()
    return tonumber(redis.call('ZRANGE', KEYS.retries, '0', '0', 'WITHSCORES')[2])
end

-- When the first lease may be ended. `later` says it for the first of those that have ended and are spared
-- for now.
local function first_end(later)
    local first = first_lease()
    if later and first and first <= now then
        local after = string.format('(%.0f', now)
        local next = redis.call('ZRANGEBYSCORE', KEYS.leases, after, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
        return math.min(later, tonumber(next) or later)
    end
    return first
end

-- What a call has counted, in a receipt: as a rule, nothing.
local COUNTS = '>I4I4I4I4I4I4I4'

local function packed(counts)
    for _, count in ipairs(counts) do
        if count > 0 then
            return '\1' .. struct.pack(COUNTS, unpack(counts))
        end
    end
    return '\0'
end

-- The counts in a receipt, and where they end.
local function unpacked(receipt, at)
    if string.sub(receipt, at, at) == '\0' then
        return {0, 0, 0, 0, 0, 0, 0}, at + 1
    end
    local counts = {struct.unpack(COUNTS, receipt, at + 1)}
    return counts, table.remove(counts)
end

-- Nothing here ends the script: what is done is done.
local function reply(counts, left, hold, refused, results, refusals, claims)
    local to_send = string.find(words, 'send') and redis.pcall('ZCOUNT', KEYS.dead, '-inf', '(0')
    local announced = noted.has_room and now or noted.is_retry_earlier and retry_due
    if announced then
        -- Other receivers sleep until the retry that they know, or until there is room. Without the
        -- permission, they look a few seconds later.
        redis.pcall('PUBLISH', KEYS.channel, string.format('%.0f', announced))
    end
    local recovered, died, trimmed, gone, newer, expired, apart = unpack(counts)
    local numbers = struct.pack(
        REPLY, now, lease_ends or -1, retry_due or -1, left, recovered, died, trimmed, type(to_send) == 'number' and to_send or 0,
        gone, newer, expired, apart, hold)
    local out = {numbers, refused, noted.unburied and error_text(noted.unburied) or '', results}
    for _, refusal in ipairs(refusals) do
        out[#out + 1] = refusal
    end
    for i, record in ipairs(claims.records) do
        out[#out + 1] = claims.ids[i]
        out[#out + 1] = record
    end
    return out
end

local function look(last, expected)
    local has_ended = lease_ends and lease_ends <= now
    return look_at_the_clock(now, lease, has_ended, control[1], control[2], last, expected)
end

if is_known then
    local _, length = struct.unpack('>I6I4', receipt, 17)
    local results, claims = string.sub(receipt, 27, 26 + length), Claims.new(noted, token, policy, now, 0, true)
    local refusals = {}
    for _ in string.gmatch(results, 'r') do
        refusals[#refusals + 1] = 'it was refused to an earlier try of this call'
    end
    local is_full = false
    local counts, at = unpacked(receipt, 27 + length)
    for _, member in ipairs(Claims.unpacked(token, receipt, at)) do
        local id = string.sub(member, 1, 16)
        local record = redis.call('ZSCORE', KEYS.leases, member) and redis.call('HGET', KEYS.messages, id)
        if record then
            claims.bytes = claims.bytes + #record
            is_full = #claims.ids > 0 and (is_full or claims.bytes > Claims.AGAIN)
            -- An older try may arrive behind this one. So only the receiver gives claims back.
            Claims.add(claims, is_full and member or id, member, is_full and '' or record)
        end
    end
    -- It is a sign of life, too, and what has passed since the first one was no pause. The next call looks at
    -- what is left.
    pcall(look, now, 0)
    pcall(function() lease_ends, retry_due = first_lease(), first_retry() end)
    return reply(counts, 1, -1, '', results, refusals, claims)
end
if is_late then
    return redis.error_reply('REDELAY a later call of this receiver was answered')
end
-- The first write. It needs no memory, and after it no command is refused for lack of memory.
redis.call('HDEL', KEYS.receipts, receiver)

-- Before the settlements, which may make room.
local limits = Limits.new(control.err and {} or {unpack(control, 3)})
local is_read, were_full = pcall(Limits.are_full, limits)
were_full = is_read and were_full

local results, refusals, died = {}, {}, 0
local function settled(count, ok, done)
    if ok then
        for _, result in ipairs(done) do
            results[#results + 1] = result
        end
    else
        for _ = 1, count do
            results[#results + 1] = 'r'
            refusals[#refusals + 1] = error_text(done)
        end
    end
end
local at = MEMBERS
if acks > 0 then
    local ok, done = pcall(acknowledge, ARGV, at, at + acks - 1)
    if ok and acknowledged < extended then
        pcall(end_acknowledged, ARGV, at, done, ARGV, acknowledged, extended - 1)
    end
    settled(acks, ok, done)
    at = at + acks
end
if extends > 0 then
    local ok, done = pcall(extend, ARGV, at, at + extends - 1, string.format('%d', now + lease))
    if ok and extended <= #ARGV then
        pcall(mark_cancelled, ARGV, at, done, ARGV, extended, #ARGV)
    end
    settled(extends, ok, done)
    at = at + extends
end
for _ = 1, others do
    local ok, result = pcall(settle, noted, now, ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3], ARGV[at + 4])
    ok, result = ok and type(result) == 'string', result
    died = died + (result == 'd' and 1 or 0)
    settled(1, ok, ok and {result} or result)
    at = at + 5
end

local claims = Claims.new(noted, token, policy, now, now + lease, is_first_try, control[9] or are_notes_new())
local recovered, trimmed, apart, left, hold = 0, 0, 0, 0, -1
local ok, refused = pcall(function()
    if control.err then
        error(control.err, 0)
    end
    lease_ends = first_lease()
    local silences, later = look(last, last + pause), nil
    if lease_ends and lease_ends <= now then
        local taken, dead
        taken, dead, later = recover(noted, now, silences, control[8])
        recovered, died = taken, died + dead
        lease_ends = first_end(later)
    end
    if string.find(words, 'sweep') then
        apart = sweep(now) and 1 or 0
        lease_ends = first_end(later)
    end
    retry_due = first_retry()
    if died > 0 or string.find(words, 'sweep') then
        trimmed = trim(now, most_dead, dead_age)
    end
    if most > 0 then
        most, hold = Limits.allowed(limits, most, time[1] * 1000000 + time[2])
    end
    if string.find(words, 'inbox') or hold >= 0 and most == 0 then
        for _ = 1, 1000 do
            if not redis.call('RPOPLPUSH', KEYS.inbox, KEYS.target) then
                break
            end
        end
    end
    if most > 0 then
        local first = math.ceil(most / 2)
        if most == 1 and not string.find(words, 'retries') then
            first = 0
        end
        local is_due = retry_due and retry_due <= now
        if is_due then
            Claims.retries(claims, first, now)
        end
        if not Claims.payloads(claims, true, most) and redis.call('LLEN', KEYS.inbox) > 0 then
            left = 1
        end
        if not Claims.payloads(claims, false, most) and redis.call('LLEN', KEYS.target) > 0 then
            left = 1
        end
        if is_due then
            Claims.retries(claims, most, now)
            retry_due = first_retry()
        end
        Limits.claimed(limits, #claims.members)
        if #claims.members < most and left == 0 then
            -- There is room for the next one.
            hold = -1
        end
    end
    noted.has_room = were_full and not Limits.are_full(limits)
end)
if #claims.members > 0 then
    lease_ends = math.min(lease_ends or claims.till, claims.till)
end
results = table.concat(results)
-- Without this permission, a lost reply costs a lease. Without any of these, nothing is claimed.
local found = {recovered, died + noted.buried, trimmed, noted.gone, noted.newer, noted.expired, apart}
local outcome = struct.pack('>I6I4', now, #results) .. results .. packed(found) .. Claims.packed(claims)
redis.pcall('HSET', KEYS.receipts, receiver, token .. outcome)
return reply(found, left, hold, ok and '' or error_text(refused), results, refusals, claims)
