-- Tells where jobs are.
-- KEYS: jobs running delayed failed
-- ARGV: id*
-- Reply: one letter an id: d delayed, r ready, l running, f failed, g gone
-- include: base
-- include: header
-- include: due
local jobs, running, delayed, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local records = call('HMGET', jobs, unpack(ARGV))
local leases = call('HMGET', running, unpack(ARGV))
local ended = call('HMGET', failed, unpack(ARGV))
local letters = {}
for i = 1, #ARGV do
  if leases[i] then
    letters[i] = 'l'
  elseif records[i] then
    local inc, _, _, _, _, _, _, priority = header(records[i])
    letters[i] = inc and call('ZSCORE', delayed, delayed_member(ARGV[i], inc, priority)) and 'd' or 'r'
  elseif ended[i] then
    letters[i] = 'f'
  else
    letters[i] = 'g'
  end
end
return concat(letters)
