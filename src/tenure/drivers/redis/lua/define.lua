-- Stores a schedule, or gives one another definition: then its cursor, and whether it is paused, stay. Memory limits may
-- refuse it.
-- KEYS: client schedules schedules:at
-- ARGV: number repeated ttl name definition
-- Reply: {done|repeated|old, y it is new, n there was one}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, schedules, schedules_at = KEYS[1], KEYS[2], KEYS[3]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local name = ARGV[4]
call('HLEN', schedules)
answer = call('HEXISTS', schedules_at, name) == 1 and 'n' or 'y'
-- The first write, and one that memory limits refuse.
call('HSET', schedules, name, ARGV[5])
if answer == 'y' then call('HSET', schedules_at, name, decimal(now) .. '|0|') end
remember(client, answer)
return { 'done', answer }
