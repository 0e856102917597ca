-- The ready lines: a list for priority 0, a sorted set for the others (score -priority; members begin with a sequence
-- number of 16 digits, so that equal priorities leave in the order in which they came).
local lined, ranked = {}, {}

-- Notes that `id|inc` enters the tail of its priority's line.
local function enter(member, priority)
  if priority == '0' then
    lined[#lined + 1] = member
  else
    ranked[#ranked + 1] = { member, priority }
  end
end

local function padded(sequence)
  return string.rep('0', 16 - #sequence) .. sequence
end

-- Writes what was noted. `base` is the queue's sequence as it stands, a decimal string.
local function enter_all(ready, ready_prio, seq, base)
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
    call('ZADD', ready_prio, unpack(scored))
  end
end

-- A delayed job's member tells its line, so that promoting it needs no look at its record.
local function delayed_member(id, inc, priority)
  if priority == '0' then return id .. '|' .. inc end
  return id .. '|' .. inc .. '|' .. priority
end
