-- Tells where jobs are.
-- KEYS: jobs running delayed failed kept kept:at
-- ARGV: id*
-- Reply: one letter an id: d delayed, r ready, l running, f failed, e expired, s succeeded, c cancelled, g gone
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: due
local jobs, running, delayed, failed, kept, kept_at = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local records = call('HMGET', jobs, unpack(ARGV))
local leases = call('HMGET', running, unpack(ARGV))
local ended = call('HMGET', failed, unpack(ARGV))
local untils = call('ZCARD', kept_at) > 0 and call('ZMSCORE', kept_at, unpack(ARGV)) or {}
local letters = {}
for i = 1, #ARGV do
  if leases[i] then
    letters[i] = 'l'
  elseif records[i] then
    local inc, _, _, _, _, _, _, priority = header(records[i])
    letters[i] = inc and call('ZSCORE', delayed, delayed_member(ARGV[i], inc, priority)) and 'd' or 'r'
  elseif ended[i] then
    letters[i] = find(ended[i], '^[^\n]*\n{"reason":"expired"') and 'e' or 'f'
  elseif untils[i] and tonumber(untils[i]) > now then
    local letter = sub(call('HGET', kept, ARGV[i]) or 'g', 1, 1)
    letters[i] = letter == 'n' and 's' or letter
  else
    letters[i] = 'g'
  end
end
return concat(letters)
