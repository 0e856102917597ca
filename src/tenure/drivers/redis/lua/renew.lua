-- Extends leases by their own length from now. Never acquires: what is not leased under this very member is lost.
-- KEYS: leased cancel none
-- ARGV: member*
-- Reply: '' when all are held, else one letter a lease: h held, c held and a cancel was requested, l lost
-- include: base
-- include: decimal
-- include: now
local leased, cancel, none = KEYS[1], KEYS[2], KEYS[3]

local scores = call('ZMSCORE', leased, unpack(ARGV))
local ids, requested = {}, {}
if call('HLEN', cancel) > 0 then
  for i = 1, #ARGV do ids[i] = sub(ARGV[i], 1, (find(ARGV[i], '|', 1, true) or 1) - 1) end
  requested = call('HMGET', cancel, unpack(ids))
end
local letters, times, plain = {}, {}, true
for i = 1, #ARGV do
  if scores[i] then
    letters[i] = 'h'
    local _, _, inc, length = find(ARGV[i], '^[^|]+|(%d+)|.*|(%d+)$')
    if requested[i] and requested[i] == inc then
      letters[i] = 'c'
      plain = false
    end
    if length then
      times[#times + 1] = decimal(later + length)
      times[#times + 1] = ARGV[i]
    end
  else
    letters[i] = 'l'
    plain = false
  end
end
if #times > 0 then
  call('DEL', none) -- never exists: a script that has written is not refused when memory is full
  call('ZADD', leased, 'XX', unpack(times))
end
if plain then return '' end
return concat(letters)
