-- Forgets jobs that failed long ago, at most 100.
-- KEYS: client failed failed:at none
-- ARGV: number repeated ttl age(ms) until(ms, '' in the first step)
-- Reply: {done|repeated|old, `removed|looked at|until`}: `until` is for the next step; '' when the first has to be made
--        again, since more than 100 jobs failed within this millisecond
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, failed, failed_at, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('HLEN', failed)
local till, ids = ARGV[5], {}
if till == '' then
  till = decimal(now - ARGV[4])
  if ARGV[4] == '0' then
    -- Later in this millisecond more may fail, and those are not meant: this millisecond's are taken now or not at all.
    ids = call('ZRANGEBYSCORE', failed_at, till, till, 'LIMIT', 0, 101)
    till = decimal(now - 1)
  end
end
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if #ids > 100 then
  answer = '0|0|'
else
  local older = call('ZRANGEBYSCORE', failed_at, '-inf', till, 'LIMIT', 0, 100 - #ids)
  for i = 1, #older do ids[#ids + 1] = older[i] end
  local removed = 0
  if #ids > 0 then
    removed = call('HDEL', failed, unpack(ids))
    call('ZREM', failed_at, unpack(ids))
  end
  answer = decimal(removed) .. '|' .. decimal(#ids) .. '|' .. till
end
remember(client, answer)
return { 'done', answer }
