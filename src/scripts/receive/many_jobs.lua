-- What else is to be done where many payloads or messages are jobs with data, and the usual calls of queues
-- that have some: receive/many.lua makes them. A part of `receive`, behind parts/field, parts/note,
-- parts/travelling and receive/record.
-- Provides  claim_jobs, for_each_held, end_acknowledged

-- Notes that the messages with these ids, the numbers of which are those of their jobs, are claimed.
local function claim_jobs(jobs, messages)
    local fields, freed = {}, {}
    for i, job in pairs(jobs) do
        if job.held then
            fields[#fields + 1] = job.id
            fields[#fields + 1] = claimed_field(job.held, messages[i])
        elseif job.frees then
            freed[#freed + 1] = job.id
        end
    end
    remove_notes(jobs)
    if #fields > 0 then
        redis.pcall('HSET', KEYS.jobs, unpack(fields))
    end
    if #freed > 0 then
        redis.pcall('HDEL', KEYS.jobs, unpack(freed))
    end
end

-- Calls `held(number, id, field)` for each of the members from `from` on that was settled and holds an id.
-- `results` says which were settled. `jobs[at..last]` are the number of a member, the id that it holds,
-- number, id...
local function for_each_held(members, from, results, jobs, at, last, held)
    local numbers, ids = {}, {}
    for i = at, last, 2 do
        local number = tonumber(jobs[i])
        if results[number] == '1' then
            numbers[#numbers + 1], ids[#ids + 1] = number, jobs[i + 1]
        end
    end
    local fields = #ids > 0 and redis.call('HMGET', KEYS.jobs, unpack(ids)) or {}
    for i, field in ipairs(fields) do
        if field and is_of_message(field, string.sub(members[from + numbers[i] - 1], 1, 16)) then
            held(numbers[i], ids[i], field)
        end
    end
end

-- Frees the ids that acknowledged jobs have held. If that is refused, a sweep finds them.
local function end_acknowledged(members, from, results, jobs, at, last)
    local done = {}
    for_each_held(members, from, results, jobs, at, last, function(_, id)
        done[#done + 1] = id
    end)
    if #done > 0 then
        redis.call('HDEL', KEYS.jobs, unpack(done))
    end
end

-- The jobs that these payloads are, by their numbers, with what their records begin with; nil if one has
-- expired.
local function usual_jobs(payloads)
    local jobs, first = travelling(payloads, now), struct.pack('>I6', now)
    for _, job in pairs(jobs) do
        local expires = expires_in(job.data)
        if 0 < expires and expires <= now then
            return nil
        end
        job.head = new_record(policy, first, job.data)
    end
    return jobs
end

if is_usual and (has_notes or acks_with_ids > 0) then
    local reply = reply_for_many(usual_jobs, claim_jobs, end_acknowledged)
    if reply then
        return reply
    end
end
