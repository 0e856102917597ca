-- Forgets compositions that were over long ago. One step looks at 100, by their ids.
-- KEYS: client flows flows:until flows:ids none
-- ARGV: number repeated ttl age(ms) until(ms, '' in the first step) after: the id that the step before ended with
-- Reply: {done|repeated|old, `forgotten|until|after`}: `after` is nothing at the end
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, flows, flows_until, flows_ids, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- include: membership
-- include: flows

local state, answer = earlier(client)
if state then return { state, answer or '' } end


local till = ARGV[5] ~= '' and tonumber(ARGV[5]) or now - ARGV[4]
local from = ARGV[6] == '' and '-' or '(' .. ARGV[6]
local ids = call('ZRANGE', flows_ids, from, '+', 'BYLEX', 'LIMIT', 0, 100)
call('HLEN', flows)
call('ZCARD', flows_until)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
local forgotten, gone = 0, {}
for i = 1, #ids do
  local c = composition_of(ids[i])
  if c and c.over ~= '0' and tonumber(c.over) <= till then
    -- One that could not be read any more was forgotten before.
    if readable(c) then forgotten = forgotten + 1 end
    gone[#gone + 1] = ids[i]
  end
end
if #gone > 0 then
  call('HDEL', flows, unpack(gone))
  call('ZREM', flows_until, unpack(gone))
  call('ZREM', flows_ids, unpack(gone))
end
answer = decimal(forgotten) .. '|' .. decimal(till) .. '|' .. (#ids == 100 and ids[100] or '')
remember(client, answer)
return { 'done', answer }
