-- Stores jobs once (P1): those whose ids exist in any state are held, and nothing of them changes.
-- KEYS: client jobs running failed seq ready beside delayed wake kept kept:at
-- ARGV: number repeated ttl, then for each job: id options envelope
--       options: '' or `delay ms|priority|crash limit (0: unset)|expires in ms (0: never)|keep ms (0: not)`
-- Reply: {done|repeated|old, answer, 1 when these are the queue's first jobs};
--        answer: '' when all are stored, else one letter a job: s stored, h held
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local client, jobs, running, failed, seq, ready, beside, delayed, wake, kept, kept_at =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local n = (#ARGV - 3) / 3
local ids = {}
for i = 1, n do ids[i] = ARGV[3 * i + 1] end
local waiting = call('HMGET', jobs, unpack(ids))
local held = call('HLEN', running) > 0 and call('HMGET', running, unpack(ids)) or {}
local ended = call('HLEN', failed) > 0 and call('HMGET', failed, unpack(ids)) or {}
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
local idle = nothing_waits(ready, beside)
local first = earliest(delayed)
call('LLEN', wake)
local any_kept = call('HLEN', kept) + call('ZCARD', kept_at) > 0

local letters, new, seen = {}, {}, {}
for i = 1, n do
  local id = ids[i]
  if waiting[i] or held[i] or ended[i] or seen[id] then
    letters[i] = 'h'
  else
    letters[i] = 's'
    seen[id] = true
    new[#new + 1] = i
  end
end

answer = ''
if #new < n then answer = concat(letters) end
if #new > 0 then
  -- The first write, and one that memory limits refuse: a refused push has written nothing.
  call('INCRBY', seq, decimal(#new))
  local at, fields, times, fresh = decimal(now), {}, {}, {}
  local plain = '|0|0|0|0|0|' .. at .. '|0\n'
  local soonest = math.huge
  for k = 1, #new do
    local i = 3 * new[k] + 1
    local id, options, inc = ARGV[i], ARGV[i + 1], plus(base, k)
    local member = id .. '|' .. inc
    fields[2 * k - 1] = id
    fresh[k] = id
    if options == '' then
      fields[2 * k] = inc .. plain .. ARGV[i + 2]
      enter(member, '0')
    else
      local _, _, delay, priority, limit, expiry, keep =
        find(options, '^(%d+)|(%-?%d+)|(%d+)|(%d+)|(%d+)$')
      local since = at
      if expiry ~= '0' then expiry = decimal(later + expiry) end
      if delay ~= '0' then
        since = decimal(later + delay)
        soonest = math.min(soonest, later + delay)
        times[#times + 1] = since
        times[#times + 1] = delayed_member(id, inc, priority)
      else
        enter(member, priority)
      end
      local rest = keep == '0' and '' or '|' .. keep
      fields[2 * k] = headed(inc, '0', '0', '0', limit, expiry, since, priority, rest) .. '\n' .. ARGV[i + 2]
    end
  end
  call('HSET', jobs, unpack(fields))
  if any_kept then
    -- The end of an earlier job with the same id must not be taken for this one's.
    call('HDEL', kept, unpack(fresh))
    call('ZREM', kept_at, unpack(fresh))
  end
  enter_all(ready, beside, seq, plus(base, #new))
  if #times > 0 then call('ZADD', delayed, unpack(times)) end
  if (idle and entering() > 0) or soonest < first then wake_up(wake) end
end
remember(client, answer)
return { 'done', answer, base == '0' and '1' or '0' }
