-- Replaces the progress of running jobs, each under its current lease. Memory limits may refuse it: nothing is lost.
-- KEYS: leased kept
-- ARGV: for each: member progress
-- Reply: one letter each: y written, n not leased under this very member
-- include: base
local leased, kept = KEYS[1], KEYS[2]

local members = {}
for i = 1, #ARGV, 2 do members[#members + 1] = ARGV[i] end
local scores = call('ZMSCORE', leased, unpack(members))
local letters, fields = {}, {}
for i = 1, #members do
  letters[i] = scores[i] and 'y' or 'n'
  if scores[i] then
    fields[#fields + 1] = sub(members[i], 1, find(members[i], '|', 1, true) - 1)
    fields[#fields + 1] = ARGV[2 * i]
  end
end
if #fields > 0 then call('HSET', kept, unpack(fields)) end
return concat(letters)
