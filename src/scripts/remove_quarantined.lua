-- Deletes an entry from the quarantine.
-- KEYS   1 quarantine list
-- ARGV   1 score or ''   2 entry
-- Reply  1, or 0 when it is not there
-- Cost   native scans of the quarantine up to where it is
local at = find_pair(KEYS[1], ARGV[1], ARGV[2])
if not at then
    return 0
end
remove_pair(KEYS[1], at)
return 1
