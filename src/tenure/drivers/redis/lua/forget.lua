-- Removes failed jobs for good.
-- KEYS: client failed failed:at none
-- ARGV: number repeated ttl, then for each: id inc
-- Reply: {done|repeated|old, one letter a job: y removed, n no longer there}
-- include: base
-- include: numbered
local client, failed, failed_at, none = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = (#ARGV - 3) / 2
local ids = {}
for i = 1, n do ids[i] = ARGV[2 * i + 2] end
local records = call('HMGET', failed, unpack(ids))
call('ZCARD', failed_at)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full

local letters, done, seen = {}, {}, {}
for i = 1, n do
  local mark = ARGV[2 * i + 3] .. '|'
  letters[i] = 'n'
  if records[i] and sub(records[i], 1, #mark) == mark and not seen[ids[i]] then
    letters[i] = 'y'
    seen[ids[i]] = true
    done[#done + 1] = ids[i]
  end
end
if #done > 0 then
  call('HDEL', failed, unpack(done))
  call('ZREM', failed_at, unpack(done))
end
answer = concat(letters)
remember(client, answer)
return { 'done', answer }
