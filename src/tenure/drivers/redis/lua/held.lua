-- Lists the leases of one holder, those that lapse first before the others, with their records.
-- KEYS: running leased
-- ARGV: limit line place mark prefix: as for the running jobs; then what the holder's tokens begin with
-- Reply: {time in ms, line, place, mark, member, deadline, record, member, deadline, record, …}; line is '' at the end
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: listing
-- include: timed
local running, leased = KEYS[1], KEYS[2]
local mine = '|' .. ARGV[5]

local every = by_score(leased, 1)
return by_time(running, leased, function(first, last)
  local entries, scores = every(first, last)
  for i = 1, #entries do
    -- No job has an empty id: those of others are passed over.
    if not find(entries[i], mine, 1, true) then entries[i] = '' end
  end
  return entries, scores
end)
