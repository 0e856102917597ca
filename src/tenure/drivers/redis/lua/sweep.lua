-- Takes away at most 100 records of cleared jobs.
-- KEYS: gone leftover none
-- ARGV:
-- Reply: how many were taken away; 0 when none is left
local gone, leftover, none = KEYS[1], KEYS[2], KEYS[3]

redis.call('LLEN', gone)
local ids = redis.call('HRANDFIELD', leftover, 100)
redis.call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if #ids > 0 then
  redis.call('HDEL', leftover, unpack(ids))
end
if redis.call('EXISTS', leftover) == 0 then
  redis.call('LREM', gone, 0, leftover)
end
return #ids
