-- Compositions whose time is over are forgotten by claims, at most 100 a call; so are those that were never started,
-- whose nodes are taken away first, at most 100 a call.
local function over_by_now()
  check_flows()
  call('HLEN', unique)
  call('HLEN', failed)
  call('ZCARD', flows_ids)
  return call('ZRANGEBYSCORE', flows_until, '-inf', decimal(now), 'LIMIT', 0, 100)
end

local function forget_flows(ids)
  local forgotten, nodes = {}, 100
  for i = 1, #ids do
    local id = ids[i]
    local c = composition_of(id)
    if c and c.phase ~= 'a' then
      local names = {}
      while #names < nodes and c.first < c.total do
        names[#names + 1] = id .. ':' .. decimal(c.first)
        c.first = c.first + 1
      end
      if #names > 0 then call('HDEL', flows_nodes, unpack(names)) end
      nodes = nodes - #names
      c.phase = 'd'
      if c.first < c.total then
        call('HSET', flows, id, packed(c))
      else
        forgotten[#forgotten + 1] = id
      end
    else
      forgotten[#forgotten + 1] = id
    end
  end
  if #forgotten > 0 then
    call('HDEL', flows, unpack(forgotten))
    call('ZREM', flows_ids, unpack(forgotten))
    call('ZREM', flows_until, unpack(forgotten))
  end
end
