-- Lists compositions that have started, by their ids.
-- KEYS: flows flows:ids
-- ARGV: limit after: the id that the page before ended with, or ''
-- Reply: {id, how it is stored, id, how it is stored, …}; the second is nothing when it is not to be read
-- include: base
-- include: decimal
-- include: now
local flows, flows_ids = KEYS[1], KEYS[2]
-- include: membership
-- include: flows

local from = ARGV[2] == '' and '-' or '(' .. ARGV[2]
local ids = call('ZRANGE', flows_ids, from, '+', 'BYLEX', 'LIMIT', 0, ARGV[1])
local reply = {}
for i = 1, #ids do
  local c = composition_of(ids[i])
  reply[2 * i - 1] = ids[i]
  reply[2 * i] = readable(c) and packed(c) or ''
end
return reply
