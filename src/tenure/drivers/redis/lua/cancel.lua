-- Removes waiting jobs and requests it of running ones. A ready job's place in its line is dropped by a later claim.
-- KEYS: client jobs running failed seq ready beside delayed wake cancel kept kept:at unique flows flows:nodes flows:due flows:until none
-- ARGV: number repeated ttl id*
-- Reply: {done|repeated|old, one letter an id: r removed, q requested, n not found}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
-- include: endings
local client, jobs, running, failed, seq, ready, beside, delayed =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local wake, cancel, kept, kept_at, unique, flows, flows_nodes, flows_due =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local flows_until, none = KEYS[17], KEYS[18]
-- include: unique
-- include: unlocking
-- include: membership
-- include: flows
-- include: releasing
-- include: advancing

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local ids = {}
for i = 4, #ARGV do ids[i - 3] = ARGV[i] end
local records = call('HMGET', jobs, unpack(ids))
local leases = call('HMGET', running, unpack(ids))
call('ZCARD', delayed)
call('HLEN', cancel)
call('HLEN', kept)
call('ZCARD', kept_at)
call('HLEN', unique)
check_flows()
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
call('DEL', none) -- never exists: a script that has written is not refused when memory is full

local letters, gone = {}, {}
for i = 1, #ids do
  local id = ids[i]
  letters[i] = 'n'
  if leases[i] then
    local inc = header(leases[i])
    if inc then
      call('HSET', cancel, id, inc)
      letters[i] = 'q'
    end
  elseif records[i] and not gone[id] then
    local inc, _, _, _, _, _, _, priority, rest = header(records[i])
    if inc then
      gone[id] = true
      ending(id, 'c', inc, rest, '')
      unlock(rest, id, inc)
      member_ended(rest, 'c')
      call('ZREM', delayed, delayed_member(id, inc, priority))
      call('HDEL', jobs, id)
      call('HDEL', cancel, id)
      letters[i] = 'r'
    end
  end
end
keep_all(kept, kept_at)
if next(changed) then advance(base) end
answer = concat(letters)
remember(client, answer)
return { 'done', answer }
