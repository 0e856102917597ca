-- Pauses a schedule, or lets it fire again, from now on.
-- KEYS: client schedules:at none
-- ARGV: number repeated ttl name paused(1|0)
-- Reply: {done|repeated|old, y changed, n unknown, or so already}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, schedules_at, none = KEYS[1], KEYS[2], KEYS[3]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local name, wanted = ARGV[4], ARGV[5]
local cursor, paused, last = string.match(call('HGET', schedules_at, name) or '', '^(%d+)|([01])|(.*)$')
answer = cursor and paused ~= wanted and 'y' or 'n'
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if answer == 'y' then
  if wanted == '0' then cursor = decimal(math.max(tonumber(cursor), now)) end
  call('HSET', schedules_at, name, cursor .. '|' .. wanted .. '|' .. last)
end
remember(client, answer)
return { 'done', answer }
