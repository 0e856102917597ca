-- Starts a composition: its first jobs are released, and from then on it can be read. Memory limits may refuse it.
-- KEYS: client jobs running failed seq ready beside delayed wake kept kept:at unique flows flows:nodes flows:due flows:until flows:ids
-- ARGV: number repeated ttl id
-- Reply: {done|repeated|old, y started, s it had started already, n unknown, g without the gate that begins it}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local client, jobs, running, failed, seq, ready, beside, delayed =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local wake, kept, kept_at, unique, flows, flows_nodes, flows_due, flows_until =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local flows_ids = KEYS[17]
-- include: unique
-- include: membership
-- include: flows
-- include: releasing
-- include: advancing

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('HLEN', jobs)
call('HLEN', running)
call('HLEN', failed)
call('LLEN', wake)
call('HLEN', kept)
call('ZCARD', kept_at)
call('HLEN', unique)
check_flows()
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
call('ZCARD', flows_ids)
local id = ARGV[4]
local c = composition_of(id)
local gate = call('HGET', flows_nodes, id .. ':-1')
local until_when = tonumber(call('ZSCORE', flows_until, id) or '0')
if c and c.phase == 'a' and readable(c) then
  answer = 's'
elseif not c or c.phase ~= 'p' or until_when <= now then
  answer = 'n'
elseif not gate or sub(gate, 1, 1) ~= 'g' then
  answer = 'g'
else
  answer = 'y'
  -- The first write, and one that memory limits refuse.
  call('ZADD', flows_ids, '0', id)
  call('ZREM', flows_until, id)
  c.phase = 'a'
  if c.total == 0 then c.finished = decimal(now) end
  changed[id] = true
  tell(id, 1, '-1', false)
  advance(base)
end
remember(client, answer)
return { 'done', answer }
