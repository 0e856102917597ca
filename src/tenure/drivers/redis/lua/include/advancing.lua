-- Tells what was noted and what is due, for a script that has put nothing into the lines itself. `base` is the queue's
-- sequence.
local function advance(base)
  local idle, first = nothing_waits(ready, beside), earliest(delayed)
  local stands, left, soonest = work_off(base)
  local entered = entering() > 0
  enter_all(ready, beside, seq, stands)
  if left or (entered and idle) or soonest < first then wake_up(wake) end
end
