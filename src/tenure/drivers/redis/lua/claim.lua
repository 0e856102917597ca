-- Recovers lapsed leases, promotes due jobs (at most 100 of either) and leases jobs from the head of the lines:
-- one suspect at most, then priorities above 0, 0 and below. Entries of jobs that are gone are dropped on the way. From
-- a paused queue nothing is leased. What leaves the head of a list is counted, so that listings keep their place. The
-- token of a lease tells at its end what is special about its job: '~' that whoever settles it names it as one to be
-- looked at, '+' and a number whom it tells in its composition, when there is no more about it than that.
-- KEYS: client jobs running ready beside delayed leased suspects fence seq unreadable wake cancel gone taken paused kept kept:at failed unique flows flows:nodes flows:due flows:until flows:ids none
-- ARGV: number repeated ttl limit lease(ms) token suspects(0|1) crash-limit(for jobs that have none) consumer(of a stream)
-- Reply: {done|empty|repeated|old, ms until something falls due or '', 1 if more may be had at once,
--         leftovers of a clear or '', marks, {ids set aside}, member, record, member, record, …}
--        marks: one letter a lease: - plain, s suspect; doomed: x to be cancelled, c crashed, e expired,
--        d too many deliveries
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
local client, jobs, running, ready, beside, delayed, leased, suspects =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local fence_key, seq, unreadable, wake, cancel, gone, taken, paused =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local kept, kept_at, failed, unique, flows, flows_nodes, flows_due, flows_until =
  KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21], KEYS[22], KEYS[23], KEYS[24]
local flows_ids, none = KEYS[25], KEYS[26]

-- What is done for compositions. These functions are made only where there are any: to make them takes longer than to
-- claim some jobs.
local function composing()
-- include: unique
-- include: membership
-- include: flows
-- include: releasing
-- include: forgetting
  -- Returns what the token ends in of a job on its first delivery, without limits of its own, that gives nothing, as long
  -- as its composition goes on; nothing for one that needs a closer look.
  local function usual(record)
    local id, next_one, flags =
      string.match(record, '^%d+|0|0|0|0|0|%d+|0|0||([^:|]+):%-?%d+:(%-?%d*):(%a*):%d*\n')
    local c = id and not find(flags, 'g', 1, true) and composition_of(id)
    return c and not c.asked and '+' .. next_one
  end
  -- Takes the end of a job that is set aside because its header cannot be read.
  local function lost(job, record, member)
    member_ended(remains(job, record, member), 'f')
  end
  return { usual = usual, old = over_by_now, off = called_off, work = work_off, forget = forget_flows, lost = lost,
    put_off = put_off }
end
local lease, own_limit, suspect_allowed = tonumber(ARGV[5]), tonumber(ARGV[8]), ARGV[7] == '1'
local want = tonumber(ARGV[4])

-- What a lease is, by its counters: doomed for a reason, suspect, or plain.
local function judged(requested, deliveries, crashes, limit, expiry)
  if requested then return 'x' end
  if crashes >= limit then return 'c' end
  if expiry > 0 and expiry <= now then return 'e' end
  if deliveries > 1000 then return 'd' end
  if crashes > 0 and crashes == limit - 1 then return 's' end
  return '-'
end

local function effective(limit)
  if limit == '0' then return own_limit end
  return tonumber(limit)
end

local flow = nil
local function called_off(rest)
  return flow and rest ~= '' and flow.off(rest)
end

local function marked(rest)
  if rest == '' then return '' end
  local next_one, flags = string.match(rest, '^|0||[^:|]+:%-?%d+:(%-?%d*):(%a*):')
  if next_one and not find(flags, 'g', 1, true) then return '+' .. next_one end
  return find(rest, '^|%d*|%x') and '~' or ''
end

local state, answer = earlier(client)
if state == 'old' then return { state } end
if state then
  -- What the lost reply brought, as far as it is still held.
  if call('HLEN', flows) > 0 then flow = composing() end
  local reply, marks, members, ids = { state, '', '0', '', '', {} }, {}, {}, {}
  for member in string.gmatch(answer, '[^ ]+') do
    members[#members + 1] = member
    ids[#ids + 1] = sub(member, 1, find(member, '|', 1, true) - 1)
  end
  if #members > 0 then
    local scores, records = call('ZMSCORE', leased, unpack(members)), call('HMGET', running, unpack(ids))
    local asked = call('HMGET', cancel, unpack(ids))
    for i = 1, #members do
      if scores[i] and records[i] then
        local inc, _, _, _, limit, expiry, _, _, rest = header(records[i])
        local _, _, deliveries, crashes = find(members[i], '^[^|]+|%d+|(%d+)|%d+|(%d+)|')
        deliveries, crashes = tonumber(deliveries), tonumber(crashes)
        marks[#marks + 1] = inc
          and judged(asked[i] == inc or called_off(rest), deliveries, crashes, effective(limit), tonumber(expiry)) or '-'
        reply[#reply + 1] = members[i]
        reply[#reply + 1] = records[i]
      end
    end
  end
  reply[5] = concat(marks)
  return reply
end

local aside = {}
local function set_aside(id, record, reason)
  call('XADD', unreadable, '*', 'id', id, 'reason', reason, 'record', record)
  aside[#aside + 1] = id
end

-- All reads that a later step depends on, and with them a check of every key's type.
local lapsed = call('ZRANGEBYSCORE', leased, '-inf', decimal(now), 'LIMIT', 0, 100)
local due = call('ZRANGEBYSCORE', delayed, '-inf', decimal(now), 'LIMIT', 0, 100)
local far = call('ZREVRANGE', leased, 0, 0, 'WITHSCORES')
local fence = call('GET', fence_key)
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
local requests = call('HLEN', cancel) > 0
local leftover = call('LINDEX', gone, 0) or ''
call('HLEN', jobs)
call('HLEN', running)
-- include: strays
call('LLEN', suspects)
call('XLEN', unreadable)
call('LLEN', wake)
local any_kept = call('HLEN', kept) + call('ZCARD', kept_at) > 0
local counted = call('HMGET', taken, 'suspects', 'ready')
local owing = false
if call('HLEN', flows) > 0 then flow = composing() end
local old_flows = flow and flow.old() or {}
local shut = call('EXISTS', paused) == 1
if shut then want = 0 end
call('DEL', none) -- never exists: a script that has written is not refused when memory is full

-- The clock went back if a deadline lies further ahead than its lease is long; then no lease would lapse for as long.
local function allowed(member)
  return later + (tonumber(string.match(member, '|(%d+)$')) or 0)
end
if far[1] and tonumber(far[2]) > allowed(far[1]) then
  far = call('ZREVRANGE', leased, 0, 99, 'WITHSCORES')
  for i = 1, #far, 2 do
    if tonumber(far[i + 1]) > allowed(far[i]) then
      call('ZADD', leased, 'XX', decimal(allowed(far[i])), far[i])
    end
  end
end

local suspected = {}
local more_strays = strays()

if #lapsed > 0 then
  local ids, fields, left, seen = {}, {}, {}, {}
  for i = 1, #lapsed do ids[i] = sub(lapsed[i], 1, (find(lapsed[i], '|', 1, true) or 1) - 1) end
  local records = call('HMGET', running, unpack(ids))
  local asked = requests and call('HMGET', cancel, unpack(ids)) or {}
  for i = 1, #lapsed do
    local id, record = ids[i], records[i]
    local _, _, held, deliveries, free, crashes = find(lapsed[i], '^[^|]+|(%d+)|(%d+)|(%d+)|(%d+)|')
    if record and held and not seen[id] then
      local inc, _, _, _, limit, expiry, _, priority, rest, stop = header(record)
      if not inc or #deliveries > 9 or #free > 9 or #crashes > 8 then
        set_aside(id, record, 'header')
        if flow then flow.lost(id, record, lapsed[i]) end
        if requests then call('HDEL', cancel, id) end
        left[#left + 1] = id
      elseif inc == held then
        -- Back to the tail of its line, with one crash more. A cancel request stays: then it is leased doomed.
        left[#left + 1] = id
        crashes = decimal(crashes + 1)
        fields[#fields + 1] = id
        fields[#fields + 1] = headed(inc, deliveries, free, crashes, limit, expiry, decimal(now), priority, rest)
          .. sub(record, stop)
        if tonumber(crashes) == effective(limit) - 1 and asked[i] ~= inc then
          suspected[#suspected + 1] = id .. '|' .. inc
        else
          enter(id .. '|' .. inc, priority)
        end
      end
      seen[id] = true
    end
  end
  if #fields > 0 then call('HSET', jobs, unpack(fields)) end
  if #suspected > 0 then call('RPUSH', suspects, unpack(suspected)) end
  if #left > 0 then
    call('HDEL', running, unpack(left))
    if any_kept then call('HDEL', kept, unpack(left)) end
  end
  call('ZREM', leased, unpack(lapsed))
end
local fresh_suspects = #suspected > 0
if any_kept then forget_old(kept, kept_at) end

for i = 1, #due do
  local _, last, entry, priority = find(due[i], '^([^|]+|%d+)|(%-?%d+)$')
  if last then enter(entry, priority) else enter(due[i], '0') end
end
local soonest_fresh = math.huge
if flow then
  base, owing, soonest_fresh = flow.work(base)
  flow.forget(old_flows)
end
enter_all(ready, beside, seq, base)
if #due > 0 then call('ZREMRANGEBYRANK', delayed, 0, #due - 1) end
if #lapsed > 0 then leave_line(ready, lapsed) end

if fence and (tonumber(fence) or 0) >= micros then fence = plus(fence, 1) else fence = decimal(micros) end
local token, tail = '|' .. ARGV[6], '|' .. fence .. '|' .. ARGV[5]
local first = '|1|0|0' .. token
local deadline = decimal(later + lease)

local budget, got, took_suspect = 100, 0, false
local members, marks, scored, moved, moved_ids, seen, apart = {}, {}, {}, {}, {}, {}, {}
local reply = { 'done', '', '0', leftover, '', aside }
suspected = {}

-- Leases those of the entries (`id|inc`) whose job is there; the others are missed and cost budget. `places` are what
-- the leases' tokens end in, where the line keeps what was taken from it.
local function consider(entries, n, places, missed)
  local ids, incs = {}, {}
  for i = 1, n do
    local bar = find(entries[i], '|', 1, true) or #entries[i] + 1
    ids[i], incs[i] = sub(entries[i], 1, bar - 1), sub(entries[i], bar + 1)
  end
  local records = call('HMGET', jobs, unpack(ids, 1, n))
  local asked = requests and call('HMGET', cancel, unpack(ids, 1, n)) or {}
  for i = 1, n do
    local id, record, member, mark = ids[i], records[i], nil, '-'
    if record and not seen[id] then
      -- A job on its first delivery, without limits of its own, needs no closer look.
      local usual = not asked[i]
        and (find(record, '^%d+|0|0|0|0|0|%d+|0\n') and '' or (flow and flow.usual(record)))
      if usual then
        local inc = incs[i]
        local place = usual .. (places[i] or '')
        if sub(record, 1, #inc + 1) == inc .. '|' then member = entries[i] .. first .. place .. tail end
      else
        local inc, deliveries, free, crashes, limit, expiry, _, _, rest = header(record)
        if not inc then
          set_aside(id, record, 'header')
          if flow then flow.lost(id, record) end
          if requests then call('HDEL', cancel, id) end
          apart[#apart + 1] = id
          seen[id] = true
        elseif inc == incs[i] then
          deliveries = deliveries + 1
          mark = judged(asked[i] == inc or called_off(rest), deliveries, tonumber(crashes), effective(limit),
            tonumber(expiry))
          if mark == 's' and (took_suspect or not suspect_allowed) then
            suspected[#suspected + 1] = entries[i]
            seen[id] = true
          else
            took_suspect = took_suspect or mark == 's'
            member = entries[i] .. '|' .. decimal(deliveries) .. '|' .. free .. '|' .. crashes .. token
              .. marked(rest) .. (places[i] or '') .. tail
          end
        end
      end
    end
    if member then
      seen[id] = true
      got, want = got + 1, want - 1
      members[got], marks[got] = member, mark
      scored[2 * got - 1], scored[2 * got] = deadline, member
      moved[2 * got - 1], moved[2 * got], moved_ids[got] = id, record, id
      reply[5 + 2 * got], reply[6 + 2 * got] = member, record
    else
      budget = budget - 1
      missed[#missed + 1] = i
    end
  end
end

-- Walks down a line as far as is wanted, and returns how many entries that were.
local function walk(read)
  local off = 0
  while want > 0 and budget > 0 do
    local entries = read(off, math.min(want, budget))
    local n = #entries
    if n == 0 then break end
    consider(entries, n, {}, {})
    off = off + n
  end
  return off
end

-- include: taking
local from_suspects = 0
if suspect_allowed and want > 0 then
  local others = want - 1
  want = 1
  from_suspects = walk(function(off, n) return call('LRANGE', suspects, off, off + n - 1) end)
  want = want + others
end
take_line()

-- Destinations first, then the lines.
if got > 0 then
  call('ZADD', leased, unpack(scored))
  call('HSET', running, unpack(moved))
  call('SET', fence_key, fence)
end
if #suspected > 0 then
  call('RPUSH', suspects, unpack(suspected))
  fresh_suspects = true
end
if got > 0 then call('HDEL', jobs, unpack(moved_ids)) end
if #apart > 0 then
  call('HDEL', jobs, unpack(apart))
  owing = flow and flow.put_off() or owing
end
if from_suspects > 0 then
  call('LTRIM', suspects, from_suspects, -1)
  call('HSET', taken, 'suspects', decimal((tonumber(counted[1]) or 0) + from_suspects))
end
drop_taken()

local left = more_waits()
local others = call('LLEN', suspects) > 0
if owing then wake_up(wake) end
local suspects_for_others = others and (fresh_suspects or from_suspects > 0)
if not shut and (left or suspects_for_others or soonest_fresh < math.huge) then wake_up(wake) end
local cut_short = budget <= 0 and (left or (others and suspect_allowed))
if want > 0 and (cut_short or more_strays or owing) then reply[3] = '1' end

local next_due = owing and now or math.min(earliest(delayed), earliest(leased))
if next_due < 1e15 then reply[2] = decimal(math.max(0, next_due - now)) end
reply[5] = concat(marks)
if got > 0 or ARGV[2] == '1' then
  remember(client, concat(members, ' '))
else
  reply[1] = 'empty'
end
return reply
