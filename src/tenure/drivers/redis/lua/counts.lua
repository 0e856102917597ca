-- Counts a queue's jobs by state, in constant time.
-- KEYS: jobs ready beside delayed leased suspects failed unreadable
-- ARGV:
-- Reply: {ready, delayed, leased, lapsed, failed, unreadable, ms that the oldest head of a line has been ready or ''}
-- include: base
-- include: decimal
-- include: now
-- include: header
-- include: line
-- include: head
local jobs, ready, beside, delayed, leased, suspects, failed, unreadable =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]

-- Entries whose job was cancelled are passed over; behind a hundred of them the age is told by another line or not at all.
local oldest = nil
local function look(entries)
  for _, entry in ipairs(entries) do
    local bar = find(entry, '|', 1, true)
    local record = bar and call('HGET', jobs, sub(entry, 1, bar - 1))
    if record then
      local inc, _, _, _, _, _, at = header(record)
      if inc == sub(entry, bar + 1) then
        oldest = math.min(oldest or math.huge, tonumber(at))
        return
      end
    end
  end
end
for _, entries in ipairs(heads(ready, beside)) do look(entries) end
look(call('LRANGE', suspects, 0, 99))

local waiting = call('ZCARD', delayed)
return {
  call('HLEN', jobs) - waiting,
  waiting,
  call('ZCARD', leased),
  call('ZCOUNT', leased, '-inf', decimal(now)),
  call('HLEN', failed),
  call('XLEN', unreadable),
  oldest and decimal(math.max(0, now - oldest)) or '',
}
