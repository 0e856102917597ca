-- Takes away at most 100 records of cleared jobs, and what else is left of them: the requests to cancel them (their
-- holder had died, and they waited to be leased doomed) and the texts of unique ones.
-- KEYS: gone leftover cancel unique none
-- ARGV:
-- Reply: how many were taken away; 0 when none is left
-- include: base
-- include: header
local gone, leftover, cancel, unique, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- include: unique

call('LLEN', gone)
local looks = call('HLEN', cancel) + call('HLEN', unique) > 0
local ids = call('HRANDFIELD', leftover, 100)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if #ids > 0 then
  for i = 1, looks and #ids or 0 do
    local id = ids[i]
    local inc, _, _, _, _, _, _, _, rest = header(call('HGET', leftover, id))
    -- A job that was pushed later under the same id has its own request, which stays.
    if inc and call('HGET', cancel, id) == inc then call('HDEL', cancel, id) end
    if inc then unlock(rest, id, inc) end
  end
  call('HDEL', leftover, unpack(ids))
end
if call('EXISTS', leftover) == 0 then
  call('LREM', gone, 0, leftover)
end
return #ids
