-- Hands out the queue's jobs again, and wakes a waiting claim.
-- KEYS: client paused wake
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, y resumed, n it was not paused}
-- include: base
-- include: numbered
-- include: wake
local client, paused, wake = KEYS[1], KEYS[2], KEYS[3]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('LLEN', wake)
-- The first write only removes: a script that has written is not refused when memory is full.
answer = call('DEL', paused) == 1 and 'y' or 'n'
if answer == 'y' then wake_up(wake) end
remember(client, answer)
return { 'done', answer }
