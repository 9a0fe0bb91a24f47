-- Removes pending jobs by their ids, as many as there is time for.
-- KEYS   1 timeout set   2 ordered list   3 jobs   4 scratch
-- ARGV   1 µs   2 where a pass through the ordered list goes on: an index from its tail; or -1: find each job by itself
--        3 a text that is no entry   4.. ids
-- Reply  {the next index, or -1 at the end of the list; for each id 1, 0 if there is no such job, or -1 if it is still pending}
-- Cost   each by itself: O(log n), and one native scan of the ordered list from its nearer end. In a pass: O(log n), and one
--        scan for all that a call finds, which reads a thousand entries at a time
local budget = tonumber(ARGV[1])
local reply, ids_of, pending = {-1}, {}, 0
redis.call('LLEN', KEYS.ordered_list)
ensure_permitted({'LREM', 'ZREM', 'HDEL'}, {})

local function remove(i, entry)
    redis.call('ZREM', KEYS.timeout_set, entry)
    redis.call('HDEL', KEYS.jobs, ARGV[i])
    reply[i - 2] = 1
end

local from = tonumber(ARGV[2])
for i = 4, #ARGV do
    reply[i - 2] = -1
    if from >= 0 or i == 4 or spent() < budget then
        local entry, _, _, field = job_of(ARGV[i])
        if not entry then
            redis.call('HDEL', KEYS.jobs, ARGV[i])
            reply[i - 2] = 0
        elseif from < 0 then
            local count = nearer_end(field)
            remove(i, entry)
            redis.call('LREM', KEYS.ordered_list, count, entry)
        else
            ids_of[entry] = i
            pending = pending + 1
        end
    end
end
if from < 0 or pending == 0 then
    return reply
end

local SLICE, marked = 1000, 0
-- To find the entries of a thousand ids takes as long again, in each call.
local till = spent() + budget
local is_far = 2 * from > redis.call('LLEN', KEYS.ordered_list)
repeat
    local entries = redis.call('LRANGE', KEYS.ordered_list, -from - SLICE, -from - 1)
    for i = #entries, 1, -1 do
        local id = ids_of[entries[i]]
        if id then
            ids_of[entries[i]] = nil
            redis.call('LSET', KEYS.ordered_list, i - 1 - #entries - from, ARGV[3])
            remove(id, entries[i])
            marked, pending = marked + 1, pending - 1
        end
    end
    from = from + #entries
until #entries < SLICE or pending == 0 or spent() >= till
if marked > 0 then
    -- From the end that is nearer.
    redis.call('LREM', KEYS.ordered_list, is_far and marked or -marked, ARGV[3])
end
-- What was removed lies no longer between the tail and the next entry.
reply[1] = pending > 0 and from < redis.call('LLEN', KEYS.ordered_list) + marked and from - marked or -1
return reply
