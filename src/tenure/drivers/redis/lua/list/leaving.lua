-- How many entries leave the head of the list when it is emptied: they are counted there, see claim.
local function leaving(ready)
  return call('LLEN', ready)
end
