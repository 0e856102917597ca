-- Reads what was set aside, oldest first, without its bytes; no more records than fit into a mebibyte (and ten).
-- KEYS: unreadable
-- ARGV: after('' from the start) limit
-- Reply: {key, id, reason, size, key, id, reason, size, …}; empty only when there is none further on
local unreadable = KEYS[1]

local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
local wanted, room, reply = tonumber(ARGV[2]), 1048576, {}
while wanted > 0 and room > 0 do
  local records = redis.call('XRANGE', unreadable, from, '+', 'COUNT', math.min(wanted, 10))
  for i = 1, #records do
    local fields = {}
    for k = 1, #records[i][2], 2 do fields[records[i][2][k]] = records[i][2][k + 1] end
    local size = #(fields['record'] or '')
    for _, told in ipairs({ records[i][1], fields['id'] or '', fields['reason'] or '', size }) do
      reply[#reply + 1] = told
    end
    from, wanted, room = '(' .. records[i][1], wanted - 1, room - size
  end
  if #records == 0 then break end
end
return reply
