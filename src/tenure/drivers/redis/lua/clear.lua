-- Removes all waiting jobs in one step, whatever their number: their records are set apart, to be swept by later calls.
-- KEYS: client jobs ready ready:prio delayed suspects taken gone fresh none
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, number of jobs}
-- include: base
-- include: decimal
-- include: numbered
local client, jobs, ready, ready_prio, delayed, suspects, taken, gone, fresh, none =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = call('HLEN', jobs)
local from_ready, from_suspects = call('LLEN', ready), call('LLEN', suspects)
call('LLEN', gone)
call('HLEN', taken)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if n > 0 then
  call('RPUSH', gone, fresh)
  call('RENAME', jobs, fresh)
end
if from_ready > 0 then call('HINCRBY', taken, 'ready', from_ready) end
if from_suspects > 0 then call('HINCRBY', taken, 'suspects', from_suspects) end
call('UNLINK', ready, ready_prio, delayed, suspects)
answer = decimal(n)
remember(client, answer)
return { 'done', answer }
