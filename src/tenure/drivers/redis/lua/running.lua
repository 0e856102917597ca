-- Lists leased jobs, those whose leases lapse first before the others.
-- KEYS: running leased
-- ARGV: limit line place mark: as the reply of the page before told them, '1' '' '' for the first page
-- Reply: {time in ms, line, place, mark, member, deadline, record, member, deadline, record, …}; line is '' at the end
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: listing
-- include: timed
local running, leased = KEYS[1], KEYS[2]

return by_time(running, leased)
