-- Takes the place of note.lua, holder.lua and held_offers.lua for offers that have no data, as long as the
-- ids that they find have none, either. So their script has few keys.
-- Provides  KNOWS_HOLDERS, has_scanned_much, holder_of, is_stale, check_holder, remove_holder_note,
--           remove_holder, add_note, remove_note, remove_note_of, payload_of, check_notes, announce_notes
local KNOWS_HOLDERS = false

local function has_scanned_much()
    return false
end

local function is_stale()
    return false
end

local holder_of, check_holder, remove_holder_note, remove_holder, add_note, remove_note, remove_note_of, payload_of, check_notes, announce_notes
