-- Deletes consumers that have read nothing for so long and on whom nothing is pending: those of processes that have
-- gone. At most 100.
-- KEYS: ready
-- ARGV: idle(ms)
-- Reply: how many were deleted
-- include: base
-- include: line
local ready = KEYS[1]

if not group_of(ready) then return 0 end
local deleted = 0
for _, consumer in ipairs(call('XINFO', 'CONSUMERS', ready, GROUP)) do
  local told = {}
  for i = 1, #consumer, 2 do told[consumer[i]] = consumer[i + 1] end
  if deleted < 100 and told['pending'] == 0 and told['idle'] >= tonumber(ARGV[1]) then
    call('XGROUP', 'DELCONSUMER', ready, GROUP, told['name'])
    deleted = deleted + 1
  end
end
return deleted
