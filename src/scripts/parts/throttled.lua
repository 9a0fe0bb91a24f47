-- The throttles of jobs: keys behind those that the script always has. A part of offer_jobs.lua, for offers
-- that are throttled.
-- Provides  throttle_of, throttled_for, start_throttle

-- The key of the job with this number, from 1 on, of so many.
local function throttle_of(number, count)
    return KEYS[#KEYS - count + number]
end

-- For how many more ms no other job is accepted; not above 0 if one is.
local function throttled_for(throttle)
    return redis.call('PTTL', throttle)
end

-- A job was accepted. A refusal changes nothing in that.
local function start_throttle(throttle, ms)
    redis.pcall('SET', throttle, '', 'PX', ms)
end
