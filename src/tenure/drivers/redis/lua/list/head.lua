-- The first entries of the line, those of each part of it by themselves.
local function heads(ready, beside)
  local first = call('ZRANGE', beside, 0, 99)
  for i = 1, #first do first[i] = sub(first[i], 18) end
  return { call('LRANGE', ready, 0, 99), first }
end
