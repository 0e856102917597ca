-- A delayed job's member tells its line, so that promoting it needs no look at its record.
local function delayed_member(id, inc, priority)
  if priority == '0' then return id .. '|' .. inc end
  return id .. '|' .. inc .. '|' .. priority
end
