-- Stores jobs once (P1): those whose ids exist in any state are held, and nothing of them changes; so is a unique job
-- while another with its text waits or runs.
-- KEYS: client jobs running failed seq ready beside delayed wake kept kept:at unique
-- ARGV: number repeated ttl, then for each job: id options envelope
--       options: '' or `delay ms|priority|crash limit (0: unset)|expires in ms (0: never)|keep ms (0: not)`,
--       of a unique job then `|` and its text
-- Reply: {done|repeated|old, answer, 1 when these are the queue's first jobs};
--        answer: '' when all are stored, else one letter a job: s stored, h held, u held by another job with
--        the same text; behind the letters, for each u, a blank and that job's id
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local client, jobs, running, failed, seq, ready, beside, delayed, wake, kept, kept_at, unique =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
-- include: unique

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

local letters, new, seen, texts, holders = {}, {}, {}, {}, {}
for i = 1, n do
  local id = ids[i]
  if waiting[i] or held[i] or ended[i] or seen[id] then
    letters[i] = 'h'
  else
    local options = ARGV[3 * i + 2]
    local text = #options > 40 and string.match(options, '^%d+|%-?%d+|%d+|%d+|%d+|(%x+)$')
    local holder = text and (texts[text] or holder_of(text))
    if holder then
      letters[i] = 'u'
      holders[#holders + 1] = ' ' .. holder
    else
      letters[i] = 's'
      seen[id] = true
      new[#new + 1] = i
      if text then texts[text] = id end
    end
  end
end

answer = ''
if #new < n then answer = concat(letters) .. concat(holders) end
if #new > 0 then
  -- The first write, and one that memory limits refuse: a refused push has written nothing.
  call('INCRBY', seq, decimal(#new))
  local at, fields, times, fresh, locks = decimal(now), {}, {}, {}, {}
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
      local _, _, delay, priority, limit, expiry, keep, text =
        find(options, '^(%d+)|(%-?%d+)|(%d+)|(%d+)|(%d+)|?(%x*)$')
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
      if text ~= '' then
        rest = '|' .. keep .. '|' .. text
        locks[#locks + 1] = text
        locks[#locks + 1] = member
      end
      fields[2 * k] = headed(inc, '0', '0', '0', limit, expiry, since, priority, rest) .. '\n' .. ARGV[i + 2]
    end
  end
  call('HSET', jobs, unpack(fields))
  if #locks > 0 then call('HSET', unique, unpack(locks)) end
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
