-- Lists delayed jobs, those that fall due first before the others.
-- KEYS: jobs delayed
-- ARGV: limit line place mark: as the reply of the page before told them, '1' '' '' for the first page
-- Reply: {time in ms, line, place, mark, entry, due, record, entry, due, record, …}; line is '' at the end
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: listing
-- include: timed
local jobs, delayed = KEYS[1], KEYS[2]

return by_time(jobs, delayed)
