-- Removes all waiting jobs in one step, whatever their number: their records are set apart, to be swept by later calls.
-- KEYS: client jobs running ready ready:prio delayed suspects cancel gone fresh none
-- ARGV: number repeated ttl
-- Reply: {done|repeated|old, number of jobs}
-- include: base
-- include: decimal
-- include: numbered
local client, jobs, running, ready, ready_prio, delayed, suspects, cancel, gone, fresh, none =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = call('HLEN', jobs)
call('LLEN', gone)
call('HLEN', running)
local requested = call('HKEYS', cancel)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if n > 0 then
  call('RPUSH', gone, fresh)
  call('RENAME', jobs, fresh)
end
call('UNLINK', ready, ready_prio, delayed, suspects)
-- Requests to cancel jobs whose holder has died, and which waited to be leased doomed.
for _, id in ipairs(requested) do
  if call('HEXISTS', running, id) == 0 then call('HDEL', cancel, id) end
end
answer = decimal(n)
remember(client, answer)
return { 'done', answer }
