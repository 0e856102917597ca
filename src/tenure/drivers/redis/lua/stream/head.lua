-- The first entries of the line.
local function heads(ready)
  local raw, first = call('XRANGE', ready, '(' .. (group_of(ready) or '0-0'), '+', 'COUNT', 100), {}
  for i = 1, #raw do first[i] = job_of(raw[i][2]) or '' end
  return { first }
end
