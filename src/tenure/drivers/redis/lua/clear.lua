-- Removes all waiting jobs in one step, whatever their number: their records are set apart, to be swept by later calls.
-- KEYS: client jobs ready beside delayed suspects taken gone fresh none
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, number of jobs}
-- include: base
-- include: decimal
-- include: numbered
-- include: line
-- include: leaving
local client, jobs, ready, beside, delayed, suspects, taken, gone, fresh, none =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = call('HLEN', jobs)
local from_suspects, from_ready = call('LLEN', suspects), leaving(ready)
call('LLEN', gone)
local counted = call('HMGET', taken, 'suspects', 'ready')
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if n > 0 then
  call('RPUSH', gone, fresh)
  call('RENAME', jobs, fresh)
end
if from_ready + from_suspects > 0 then
  -- They leave the heads of their lists too: see claim.
  call('HSET', taken, 'suspects', decimal((tonumber(counted[1]) or 0) + from_suspects),
    'ready', decimal((tonumber(counted[2]) or 0) + from_ready))
end
call('UNLINK', ready, beside, delayed, suspects)
answer = decimal(n)
remember(client, answer)
return { 'done', answer }
