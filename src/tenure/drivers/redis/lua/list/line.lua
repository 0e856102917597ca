-- beside: ready:prio
-- The ready line as a list for priority 0, and beside it a sorted set for the others (score -priority; members begin
-- with a sequence number of 16 digits, so that equal priorities leave in the order in which they came).
local lined, ranked = {}, {}

-- Notes that `id|inc` enters the tail of its priority's line.
local function enter(member, priority)
  if priority == '0' then
    lined[#lined + 1] = member
  else
    ranked[#ranked + 1] = { member, priority }
  end
end

-- How many were noted.
local function entering()
  return #lined + #ranked
end

local function padded(sequence)
  return string.rep('0', 16 - #sequence) .. sequence
end

-- Writes what was noted. `base` is the queue's sequence as it stands, a decimal string.
local function enter_all(ready, beside, seq, base)
  if #lined > 0 then
    call('RPUSH', ready, unpack(lined))
  end
  if #ranked > 0 then
    call('INCRBY', seq, decimal(#ranked))
    local scored = {}
    for i = 1, #ranked do
      scored[2 * i - 1] = decimal(-tonumber(ranked[i][2]))
      scored[2 * i] = padded(plus(base, i)) .. '|' .. ranked[i][1]
    end
    call('ZADD', beside, unpack(scored))
  end
end

-- Tells whether nothing waits in the line.
local function nothing_waits(ready, beside)
  return call('LLEN', ready) + call('ZCARD', beside) == 0
end

-- A lease has no place in the line.
local function check_line() end
local function leave_line() end
