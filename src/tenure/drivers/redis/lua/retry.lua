-- Makes failed jobs new ready ones: a new incarnation, counters at zero, limits kept; an expiry that has passed is not.
-- A unique job takes its text again, and stays failed while another has it. Who was of a composition is not any more.
-- KEYS: client jobs running failed failed:at seq ready beside wake kept kept:at unique
-- ARGV: number repeated ttl, then for each: id inc
-- Reply: {done|repeated|old, one letter a job: y made ready, n no longer there, or not unique now}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: membership
-- include: line
-- include: wake
local client, jobs, running, failed, failed_at, seq, ready, beside, wake, kept, kept_at, unique =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
-- include: unique

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = (#ARGV - 3) / 2
local ids = {}
for i = 1, n do ids[i] = ARGV[2 * i + 2] end
local records = call('HMGET', failed, unpack(ids))
local waiting = call('HMGET', jobs, unpack(ids))
local held = call('HMGET', running, unpack(ids))
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
local idle = nothing_waits(ready, beside)
call('ZCARD', failed_at)
call('LLEN', wake)
local any_kept = call('HLEN', kept) + call('ZCARD', kept_at) > 0

local letters, fields, done, seen, texts, locks = {}, {}, {}, {}, {}, {}
for i = 1, n do
  local id, record = ids[i], records[i]
  letters[i] = 'n'
  if record and not waiting[i] and not held[i] and not seen[id] then
    local inc, _, _, _, limit, expiry, _, priority, rest, stop = header(record)
    local envelope = inc == ARGV[2 * i + 3] and find(record, '\n', stop + 1, true)
    local text = envelope and unique_of(rest)
    if envelope and not (text and (texts[text] or holder_of(text))) then
      letters[i] = 'y'
      seen[id] = true
      done[#done + 1] = id
      if tonumber(expiry) <= now then expiry = '0' end
      rest = standalone(rest)
      local fresh = plus(base, #done)
      fields[#fields + 1] = id
      fields[#fields + 1] = headed(fresh, '0', '0', '0', limit, expiry, decimal(now), priority, rest)
        .. sub(record, envelope)
      enter(id .. '|' .. fresh, priority)
      if text then
        texts[text] = true
        locks[#locks + 1] = text
        locks[#locks + 1] = id .. '|' .. fresh
      end
    end
  end
end
answer = concat(letters)
if #done > 0 then
  call('INCRBY', seq, decimal(#done))
  call('HSET', jobs, unpack(fields))
  if #locks > 0 then call('HSET', unique, unpack(locks)) end
  enter_all(ready, beside, seq, plus(base, #done))
  call('HDEL', failed, unpack(done))
  call('ZREM', failed_at, unpack(done))
  if any_kept then
    call('HDEL', kept, unpack(done))
    call('ZREM', kept_at, unpack(done))
  end
  if idle then wake_up(wake) end
end
remember(client, answer)
return { 'done', answer }
