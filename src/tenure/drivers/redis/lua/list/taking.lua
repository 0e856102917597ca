-- Taking from a list, and from the sorted set beside it: what leaves the head of the list is counted, so that listings
-- keep their place.
local walked, from_ready = {}, 0

local function ranked_between(low, high)
  return function(off, n)
    local raw = call('ZRANGEBYSCORE', beside, low, high, 'LIMIT', off, n)
    local entries = {}
    for i = 1, #raw do
      walked[#walked + 1] = raw[i]
      entries[i] = sub(raw[i], 18)
    end
    return entries
  end
end

local function take_line()
  if call('ZCARD', beside) > 0 then walk(ranked_between('-inf', '(0')) end
  from_ready = walk(function(off, n) return call('LRANGE', ready, off, off + n - 1) end)
  if call('ZCARD', beside) > #walked then walk(ranked_between('(0', '+inf')) end
end

local function drop_taken()
  if from_ready > 0 then
    call('LTRIM', ready, from_ready, -1)
    call('HSET', taken, 'ready', decimal((tonumber(counted[2]) or 0) + from_ready))
  end
  if #walked > 0 then call('ZREM', beside, unpack(walked)) end
end

local function more_waits()
  return not nothing_waits(ready, beside)
end
