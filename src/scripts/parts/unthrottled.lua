-- Takes the place of throttled.lua for offers that are not throttled. So their script has no keys but those
-- with names.
-- Provides  throttle_of, throttled_for, start_throttle

local function throttle_of()
    return nil
end

local function throttled_for()
    return 0
end

local function start_throttle()
end
