-- Finds the end of the ordered list that a job is nearer to, from which LREM scans. A part of the scripts
-- that remove jobs, behind parts/field.
-- Provides  nearer_end
-- The list is in the order in which entries were stored. A job that was replaced lies further back than its
-- first offer says, but its field has the due time of its present entry. A wrong answer only costs time.
local YOUNG = 1000 -- most jobs that are removed are among the last ones

-- The field of the job at an index of the list, if it is one.
local function field_at(index)
    local entry = redis.pcall('LRANGE', KEYS.ordered_list, index, index)[1]
    if entry then
        local field = redis.pcall('HGET', KEYS.jobs, string.sub(entry, 2, 1 + (string.byte(entry) or 0)))
        return type(field) == 'string' and has_entry(field) and entry_of(field) == entry and field or nil
    end
end

-- The count for LREM: 1 from the head, -1 from the tail. From the head only if both times of the field are
-- early.
local function nearer_end(field)
    local length = redis.pcall('LLEN', KEYS.ordered_list)
    if type(length) ~= 'number' or length < 2 * YOUNG then
        return -1
    end
    local young = field_at(-YOUNG)
    if not young or first_of(field) >= first_of(young) then
        return -1
    end
    local middle = field_at(math.floor(length / 2))
    return middle and first_of(field) < first_of(middle) and due_of(field) < due_of(middle) and 1 or -1
end
