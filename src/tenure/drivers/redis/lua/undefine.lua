-- Forgets a schedule; its jobs stay.
-- KEYS: client schedules schedules:at
-- ARGV: number repeated ttl name
-- Reply: {done|repeated|old, y forgotten, n unknown}
-- include: base
-- include: numbered
local client, schedules, schedules_at = KEYS[1], KEYS[2], KEYS[3]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('HLEN', schedules)
-- The first write only removes: a script that has written is not refused when memory is full.
answer = call('HDEL', schedules_at, ARGV[4]) == 1 and 'y' or 'n'
call('HDEL', schedules, ARGV[4])
remember(client, answer)
return { 'done', answer }
