-- Removes waiting jobs and requests it of running ones. A ready job's place in its line is dropped by a later claim.
-- KEYS: client jobs running delayed cancel kept kept:at unique none
-- ARGV: number repeated ttl id*
-- Reply: {done|repeated|old, one letter an id: r removed, q requested, n not found}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: header
-- include: due
-- include: endings
local client, jobs, running, delayed, cancel, kept, kept_at, unique, none =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
-- include: unique

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
      call('ZREM', delayed, delayed_member(id, inc, priority))
      call('HDEL', jobs, id)
      call('HDEL', cancel, id)
      letters[i] = 'r'
    end
  end
end
keep_all(kept, kept_at)
answer = concat(letters)
remember(client, answer)
return { 'done', answer }
