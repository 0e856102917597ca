-- Tells all schedules of the queue, in no particular order.
-- KEYS: schedules schedules:at jobs running
-- ARGV: none
-- Reply: {time in us, then for each: name, cursor|1 when it is paused|last job, 1 when that waits or runs, definition}
-- include: base
-- include: decimal
-- include: now
local schedules, schedules_at, jobs, running = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local found = call('HGETALL', schedules_at)
local reply = { decimal(micros) }
for i = 1, #found, 2 do
  local definition = call('HGET', schedules, found[i])
  if definition then
    local last = string.match(found[i + 1], '|([^|]+)$')
    local busy = last and call('HEXISTS', jobs, last) + call('HEXISTS', running, last) > 0
    reply[#reply + 1] = found[i]
    reply[#reply + 1] = found[i + 1]
    reply[#reply + 1] = busy and '1' or '0'
    reply[#reply + 1] = definition
  end
end
return reply
