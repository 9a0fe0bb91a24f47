-- Keeps copies of what pops took, until their replies have arrived. A part of the scripts that pop from
-- one list, or poll; take_any.lua has its own.
-- Provides  claimed, claim, unclaim
-- The claims of a queue are the fields of one hash, by the ids of the pops: {kind, epoch ms, list of what was
-- popped}. A pop whose reply is lost is sent again with its id, and returns what the first try took.

-- Returns what an earlier try of this pop took, or false if there was none.
local function claimed(id)
    local copy = redis.call('HGET', KEYS.claims, id)
    return copy and cmsgpack.unpack(copy)[3]
end

-- Claims what is going to be popped, and forgets the claim `earlier`, whose reply has arrived. These are the
-- first writes. HDEL is the first of all: it needs no memory, so takers can empty a server that is full.
local function claim(id, earlier, kind, payloads, ms)
    redis.call('HDEL', KEYS.claims, earlier)
    local time = redis.call('TIME')
    redis.call('HSET', KEYS.claims, id, cmsgpack.pack({kind, time[1] * 1000 + math.floor(time[2] / 1000), payloads}))
    -- Without this permission, claims that a dead process left are kept indefinitely.
    redis.pcall('PEXPIRE', KEYS.claims, ms)
end

-- Takes a claim back, because nothing was popped.
local function unclaim(id)
    redis.call('HDEL', KEYS.claims, id)
end
