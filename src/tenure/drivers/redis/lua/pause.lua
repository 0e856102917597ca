-- Stops handing out the queue's jobs. Claims go on recovering and promoting; all else goes on too.
-- KEYS: client paused none
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, y paused, n it was paused already}
-- include: base
-- include: numbered
local client, paused, none = KEYS[1], KEYS[2], KEYS[3]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

answer = call('EXISTS', paused) == 1 and 'n' or 'y'
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if answer == 'y' then call('SET', paused, '1') end
remember(client, answer)
return { 'done', answer }
