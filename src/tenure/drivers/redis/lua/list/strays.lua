-- A job that was taken is not in its list any more, so there are no strays; see the stream's.
nothing_waits(ready, beside) -- checks what lies there
local function strays()
  return false
end
