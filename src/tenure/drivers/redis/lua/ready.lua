-- Lists ready jobs in the order in which claims take them; entries of jobs that are gone are passed over.
-- KEYS: jobs ready beside suspects taken
-- ARGV: limit line place mark: as the reply of the page before told them, '1' '' '' for the first page
--       line: 1 suspects, 2 priorities above 0, 3 priority 0, 4 priorities below 0
-- Reply: {time in ms, line, place, mark, entry, '', record, entry, '', record, …}; line is '' at the end
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: line
-- include: listing
local jobs, ready, beside, suspects, taken = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local start, place, mark = tonumber(ARGV[2]), ARGV[3], ARGV[4]

-- A place in a list counts from its first entry ever: entries leave at its head alone, and are counted then.
local function listed(number, line, name)
  local gone = math.floor(tonumber(call('HGET', taken, name) or '0') or 0)
  local from = start == number and place ~= '' and math.max(0, tonumber(place) - gone) or 0
  local function read(first, last) return call('LRANGE', line, first, last) end
  local index = add(jobs, from, call('LLEN', line) - 1, read)
  if index then page[2], page[3] = decimal(number), decimal(gone + index) end
  return index
end

-- include: page
if start <= 1 and listed(1, suspects, 'suspects') then return page end
list_line()
return page
