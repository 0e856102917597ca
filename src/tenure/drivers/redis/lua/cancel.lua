-- Removes waiting jobs and requests it of running ones. A ready job's place in its line is dropped by a later claim.
-- KEYS: client jobs running delayed cancel none
-- ARGV: number repeated ttl id*
-- Reply: {done|repeated|old, one letter an id: r removed, q requested, n not found}
-- include: base
-- include: numbered
-- include: header
-- include: due
local client, jobs, running, delayed, cancel, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local ids = {}
for i = 4, #ARGV do ids[i - 3] = ARGV[i] end
local records = call('HMGET', jobs, unpack(ids))
local leases = call('HMGET', running, unpack(ids))
call('ZCARD', delayed)
call('HLEN', cancel)
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
    local inc, _, _, _, _, _, _, priority = header(records[i])
    if inc then
      gone[id] = true
      call('ZREM', delayed, delayed_member(id, inc, priority))
      call('HDEL', jobs, id)
      call('HDEL', cancel, id)
      letters[i] = 'r'
    end
  end
end
answer = concat(letters)
remember(client, answer)
return { 'done', answer }
