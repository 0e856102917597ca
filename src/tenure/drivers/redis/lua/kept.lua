-- Reads what is kept of jobs.
-- KEYS: kept
-- ARGV: id*
-- Reply: {now, then for each id what is kept of it, or ''}; it may be an end whose time is over
-- include: base
-- include: decimal
-- include: now
local kept = KEYS[1]

local values = call('HMGET', kept, unpack(ARGV))
for i = 1, #values do values[i] = values[i] or '' end
return { decimal(now), unpack(values) }
