-- Stores nodes of a composition that has not started. Memory limits may refuse it.
-- KEYS: client flows flows:nodes flows:due flows:until
-- ARGV: number repeated ttl id, then for each: number node, as `flows:nodes` holds it
-- Reply: {done|repeated|old, y stored, n there is no such composition that has not started}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
local client, flows, flows_nodes, flows_due, flows_until =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- include: membership
-- include: flows

local state, answer = earlier(client)
if state then return { state, answer or '' } end


check_flows()
local id = ARGV[4]
local c = composition_of(id)
answer = c and c.phase == 'p' and 'y' or 'n'
if answer == 'y' then
  local fields = {}
  for i = 5, #ARGV, 2 do
    local number = tonumber(ARGV[i])
    fields[#fields + 1] = id .. ':' .. ARGV[i]
    fields[#fields + 1] = ARGV[i + 1]
    if number >= 0 then c.total = c.total + 1 end
    c.first = math.min(c.first, number)
    c.left = c.left + 1
  end
  -- The first write, and one that memory limits refuse.
  call('HSET', flows, id, packed(c))
  if #fields > 0 then call('HSET', flows_nodes, unpack(fields)) end
end
remember(client, answer)
return { 'done', answer }
