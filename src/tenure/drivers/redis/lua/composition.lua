-- Reads a composition that has started.
-- KEYS: flows
-- ARGV: id
-- Reply: how it is stored, or ''
-- include: base
-- include: decimal
-- include: now
local flows = KEYS[1]
-- include: membership
-- include: flows

local c = composition_of(ARGV[1])
return readable(c) and packed(c) or ''
