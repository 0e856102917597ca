-- Hands out the queue's jobs again, and wakes a waiting claim.
-- KEYS: client paused wake none
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, y resumed, n it was not paused}
-- include: base
-- include: numbered
-- include: wake
local client, paused, wake, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('LLEN', wake)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
answer = call('DEL', paused) == 1 and 'y' or 'n'
if answer == 'y' then wake_up(wake) end
remember(client, answer)
return { 'done', answer }
