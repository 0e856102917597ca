-- A place in a stream is the id of an entry, and needs no counting.
local function leaving(ready)
  check_line(ready)
  return 0
end
