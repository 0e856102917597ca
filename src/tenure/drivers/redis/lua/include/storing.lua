-- Storing new jobs, in two steps: a script looks at all that it touches before it writes anything. ARGV holds the jobs
-- behind its first `before` values: for each its id, its options and its envelope; see push.

-- Tells which jobs are new, and the letters that answer for them; nothing when the sequence is spoilt.
local function look_at(before)
  local n = (#ARGV - before) / 3
  local ids = {}
  for i = 1, n do ids[i] = ARGV[before + 3 * i - 2] end
  local waiting = call('HMGET', jobs, unpack(ids))
  local held = call('HLEN', running) > 0 and call('HMGET', running, unpack(ids)) or {}
  local ended = call('HLEN', failed) > 0 and call('HMGET', failed, unpack(ids)) or {}
  local base = sequence(seq)
  if not base then return nil end
  local idle, first = nothing_waits(ready, beside), earliest(delayed)
  call('LLEN', wake)
  local any_kept = call('HLEN', kept) + call('ZCARD', kept_at) > 0

  local letters, new, seen, texts, holders = {}, {}, {}, {}, {}
  for i = 1, n do
    local id = ids[i]
    if waiting[i] or held[i] or ended[i] or seen[id] then
      letters[i] = 'h'
    else
      local options = ARGV[before + 3 * i - 1]
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
  local told = #new < n and concat(letters) .. concat(holders) or ''
  return { before = before, base = base, idle = idle, first = first, any_kept = any_kept, new = new, told = told }
end

-- Stores those that are new.
local function store(looked)
  local base, new = looked.base, looked.new
  if #new == 0 then return end
  -- The first write, and one that memory limits refuse: a refused push has written nothing.
  call('INCRBY', seq, decimal(#new))
  local at, fields, times, fresh, locks = decimal(now), {}, {}, {}, {}
  local plain = '|0|0|0|0|0|' .. at .. '|0\n'
  local soonest = math.huge
  for k = 1, #new do
    local i = looked.before + 3 * new[k] - 2
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
  if looked.any_kept then
    -- The end of an earlier job with the same id must not be taken for this one's.
    call('HDEL', kept, unpack(fresh))
    call('ZREM', kept_at, unpack(fresh))
  end
  enter_all(ready, beside, seq, plus(base, #new))
  if #times > 0 then call('ZADD', delayed, unpack(times)) end
  if (looked.idle and entering() > 0) or soonest < looked.first then wake_up(wake) end
end
