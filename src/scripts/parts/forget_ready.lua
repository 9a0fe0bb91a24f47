-- Forgets the jobs that ready payloads were, once these are removed: what travels with them would travel with
-- equal payloads that are offered later. A part of the scripts that remove payloads, behind parts/travelling.
-- Provides  time_of_jobs, forget_ready
local AT_ONCE = 1000 -- payloads for which notes are read

-- The time, epoch ms, if any payload may be a job, and nil otherwise. Fails, before the first write, if jobs
-- may not be forgotten. Changes nothing.
local function time_of_jobs()
    local count = redis.pcall('HLEN', KEYS.notes)
    if count == 0 then
        return nil
    end
    redis.call('ZMSCORE', KEYS.timeout_set, '')
    redis.call('HMGET', KEYS.jobs, '')
    check_notes()
    redis.call('HDEL', KEYS.jobs, '')
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function forget_some(payloads, now)
    local jobs, ids = travelling(payloads, now), {}
    for _, job in pairs(jobs) do
        if job.held or job.frees then
            ids[#ids + 1] = job.id
        end
    end
    remove_notes(jobs)
    if #ids > 0 then
        redis.call('HDEL', KEYS.jobs, unpack(ids))
    end
end

-- Of equal payloads, the jobs that were due first are gone. `now` is that time. What the server refuses is
-- left to a sweep.
local function forget_ready(payloads, now)
    for first = 1, #payloads, AT_ONCE do
        local some = {unpack(payloads, first, math.min(first + AT_ONCE - 1, #payloads))}
        -- A note that somebody else wrote concerns its own payload alone.
        for i = 1, pcall(forget_some, some, now) and 0 or #some do
            pcall(forget_some, {some[i]}, now)
        end
    end
end
