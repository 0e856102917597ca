-- Reads failed jobs, oldest first.
-- KEYS: failed failed:at
-- ARGV: offset limit
-- Reply: {id, record, id, record, …}
local failed, failed_at = KEYS[1], KEYS[2]

local ids = redis.call('ZRANGE', failed_at, ARGV[1], ARGV[1] + ARGV[2] - 1)
if #ids == 0 then return {} end
local records = redis.call('HMGET', failed, unpack(ids))
local reply = {}
for i = 1, #ids do
  if records[i] then
    reply[#reply + 1] = ids[i]
    reply[#reply + 1] = records[i]
  end
end
return reply
