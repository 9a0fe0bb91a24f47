-- What is stored of a job: its field in the hash of jobs, and its data. A part of the scripts about jobs, in
-- front of the others.
-- Provides  packed_time, field_of, data_of
-- parts/field.lua and parts/note.lua say what the bytes mean. Times are epoch ms.

local function packed_time(ms)
    return struct.pack('>I6', ms)
end

local function field_of(kind, first, due, entry)
    return kind .. struct.pack('>I6I6', first, due) .. entry
end

local function data_of(due, id, flags, offered, expires, headers)
    return struct.pack('>I6B', due, #id) .. id .. struct.pack('>BI6I6', flags, offered, expires) .. headers
end
