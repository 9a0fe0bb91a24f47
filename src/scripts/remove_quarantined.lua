-- Deletes one entry from the quarantine.
-- KEYS   1 quarantine   2 scratch
-- ARGV   1 score or ''   2 entry
-- Reply  1, or 0 if it is not there
-- Cost   native scans of the quarantine, up to the entry
local at = find_pair(ARGV[1], ARGV[2], 0)
if not at then
    return 0
end
ensure_permitted({'LREM'}, {})
remove_pair(at)
return 1
