-- Adds counted jobs to a composition from inside one of its jobs, under its current lease: they begin at once, and tell
-- the gate that this one tells. Memory limits may refuse it.
-- KEYS: client leased jobs running failed seq ready beside delayed wake kept kept:at unique flows flows:nodes flows:due flows:until
-- ARGV: number repeated ttl member, then for each: when options envelope
-- Reply: {done|repeated|old, y added, n the lease is stale, the composition cancelled, or what the job tells no gate}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local client, leased, jobs, running, failed, seq, ready, beside =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local delayed, wake, kept, kept_at, unique, flows, flows_nodes, flows_due =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local flows_until = KEYS[17]
-- include: unique
-- include: membership
-- include: flows
-- include: releasing
-- include: advancing

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('ZCARD', leased)
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
local member = ARGV[4]
local job = sub(member, 1, (find(member, '|', 1, true) or 1) - 1)
local inc, _, _, _, _, _, _, _, rest = header(call('HGET', running, job) or '')
local id, number, next_one = flow_of(rest or '')
local current = call('ZSCORE', leased, member) and inc == string.match(member, '^[^|]+|(%d+)|')
local c = current and id and sub(number, 1, 1) ~= '-' and composition_of(id)
local gate = c and not c.asked and next_one ~= '' and call('HGET', flows_nodes, id .. ':' .. next_one)
local needs, named = string.match(gate or '', '^g|(%d+)|(.*)$')
answer = needs and 'y' or 'n'
if needs then
  local added = (#ARGV - 4) / 3
  local fields = { id .. ':' .. next_one, 'g|' .. decimal(needs + added) .. '|' .. named }
  local numbers = {}
  for i = 1, added do
    local at = 3 * i + 2
    numbers[i] = decimal(c.total + i - 1)
    fields[#fields + 1] = id .. ':' .. numbers[i]
    fields[#fields + 1] = 'j|1|' .. ARGV[at] .. '|' .. next_one .. '||' .. ARGV[at + 1] .. '\n' .. ARGV[at + 2]
  end
  -- The first write, and one that memory limits refuse.
  call('HSET', flows_nodes, unpack(fields))
  c.total, c.left = c.total + added, c.left + added
  changed[id] = true
  if added > 0 then tell(id, 1, concat(numbers, ','), false) end
  advance(base)
end
remember(client, answer)
return { 'done', answer }
