-- Takes away at most 100 records of cleared jobs, and the requests to cancel them: their holder had died, and they
-- waited to be leased doomed.
-- KEYS: gone leftover cancel none
-- ARGV:
-- Reply: how many were taken away; 0 when none is left
-- include: base
-- include: header
local gone, leftover, cancel, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

call('LLEN', gone)
local requests = call('HLEN', cancel) > 0
local ids = call('HRANDFIELD', leftover, 100)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if #ids > 0 then
  local asked = requests and call('HMGET', cancel, unpack(ids)) or {}
  for i = 1, #ids do
    -- A job that was pushed later under the same id has its own request, which stays.
    if asked[i] and header(call('HGET', leftover, ids[i])) == asked[i] then call('HDEL', cancel, ids[i]) end
  end
  call('HDEL', leftover, unpack(ids))
end
if call('EXISTS', leftover) == 0 then
  call('LREM', gone, 0, leftover)
end
return #ids
