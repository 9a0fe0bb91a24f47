-- Takes the place of note.lua, holder.lua and held_offers.lua for offers that have no data, as long as the ids that they find have none, either. So
-- their script has few keys.
-- Provides  KNOWS_HOLDERS, has_scanned_much, holder_of, remove_holder_note, remove_holder, data_of, add_note, remove_note, payload_of, check_notes,
--           announce_notes
local KNOWS_HOLDERS = false

local function has_scanned_much()
    return false
end

local holder_of, remove_holder_note, remove_holder, data_of, add_note, remove_note, payload_of, check_notes, announce_notes
