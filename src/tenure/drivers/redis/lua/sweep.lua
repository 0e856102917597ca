-- Takes away at most 100 records of cleared jobs, and what else is left of them: the requests to cancel them (their
-- holder had died, and they waited to be leased doomed), the texts of unique ones, and their places in compositions.
-- Where there is any such thing they are read, and those are no more than fit into a mebibyte (and one).
-- KEYS: gone leftover jobs running failed seq ready beside delayed wake cancel kept kept:at unique flows flows:nodes flows:due flows:until none
-- ARGV:
-- Reply: how many were taken away; 0 when none is left
-- include: base
-- include: decimal
-- include: now
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local gone, leftover, jobs, running, failed, seq, ready, beside =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local delayed, wake, cancel, kept, kept_at, unique, flows, flows_nodes =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local flows_due, flows_until, none = KEYS[17], KEYS[18], KEYS[19]
-- include: unique
-- include: unlocking
-- include: membership
-- include: flows
-- include: releasing
-- include: advancing

call('LLEN', gone)
local looks = call('HLEN', cancel) + call('HLEN', unique) + call('HLEN', flows) > 0
check_flows()
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
local ids = call('HRANDFIELD', leftover, 100)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full
if #ids > 0 then
  local swept, bytes = looks and 0 or #ids, 1048576
  while swept < #ids and bytes > 0 do
    swept = swept + 1
    local id = ids[swept]
    local record = call('HGET', leftover, id)
    local inc, _, _, _, _, _, _, _, rest = header(record)
    bytes = bytes - #record
    -- A job that was pushed later under the same id has its own request, which stays.
    if inc and call('HGET', cancel, id) == inc then call('HDEL', cancel, id) end
    if inc then unlock(rest, id, inc) end
    member_ended(inc and rest or remains(id, record), 'c')
  end
  call('HDEL', leftover, unpack(ids, 1, swept))
  if next(changed) then advance(base) end
end
if call('EXISTS', leftover) == 0 then
  call('LREM', gone, 0, leftover)
end
return #ids
