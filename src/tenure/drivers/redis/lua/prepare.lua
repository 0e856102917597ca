-- Begins to store a composition. Memory limits may refuse it.
-- KEYS: client flows flows:nodes flows:due flows:until flows:ids
-- ARGV: number repeated ttl id kind retention(ms) abandoned(ms) name
-- Reply: {done|repeated|old, y begun, n there is one with this id}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, flows, flows_nodes, flows_due, flows_until, flows_ids =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- include: membership
-- include: flows

local state, answer = earlier(client)
if state then return { state, answer or '' } end


check_flows()
call('ZCARD', flows_ids)
local id = ARGV[4]
local c = composition_of(id)
answer = c and (c.phase ~= 'a' or readable(c)) and 'n' or 'y'
if answer == 'y' then
  -- The first write, and one that memory limits refuse.
  call('HSET', flows, id, packed({ phase = 'p', kind = ARGV[5], asked = false, total = 0, s = 0, f = 0, c = 0,
    left = 0, created = decimal(now), finished = '0', over = '0', retention = tonumber(ARGV[6]), first = 0,
    name = ARGV[8] }))
  call('ZADD', flows_until, decimal(later + ARGV[7]), id)
  call('ZREM', flows_ids, id)
end
remember(client, answer)
return { 'done', answer }
