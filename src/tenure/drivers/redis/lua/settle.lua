-- Ends leases, and releases what waited in compositions for that. What is no longer leased under the very member that
-- is named is stale, and nothing of it changes.
-- KEYS: client jobs running ready beside delayed leased suspects failed failed:at unreadable seq wake cancel kept kept:at unique flows flows:nodes flows:due flows:until none
-- ARGV: number repeated ttl acks, then the members to acknowledge, then for each other: verb member detail kind
--       verb k acknowledge a job whose record must be looked at (its end is kept, it is unique, or it is of a
--              composition): detail the result, kind '' | none: there is none
--            d drop such a job
--            r release: detail delay ms, kind '' | free | crashed
--            f fail: detail the failure, one line, kind the reason to be kept
--            e the same, because its time had passed
--            s set aside: detail the reason
-- Reply: {done|repeated|old, answer}; answer: '' when all are done, else one letter each: d done, c cancelled
--        instead of released, s stale
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
local failed, failed_at, unreadable, seq, wake, cancel, kept, kept_at =
  KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local unique, flows, flows_nodes, flows_due, flows_until, none =
  KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21], KEYS[22]
-- include: unlocking

-- What is done for compositions. These functions are made only where there are any: to make them takes longer than to
-- settle a job.
local function composing()
-- include: unique
-- include: membership
-- include: flows
-- include: releasing
  return { check = check_flows, off = called_off, ended = member_ended, several_ended = nodes_ended, work = work_off,
    remains = remains }
end

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local acks = tonumber(ARGV[4])
local members, n = {}, acks + (#ARGV - 4 - acks) / 4
for i = 1, acks do members[i] = ARGV[4 + i] end
for i = acks + 1, n do members[i] = ARGV[6 + acks + 4 * (i - acks - 1)] end

-- All reads, and a check of every key's type.
local scores = call('ZMSCORE', leased, unpack(members))
call('HLEN', running)
check_line(ready)
local letters, current, ids, seen, others, other_ids = {}, {}, {}, {}, {}, {}
for i = 1, n do
  local member = members[i]
  if scores[i] and not seen[member] then
    seen[member] = true
    letters[i] = 'd'
    local id = sub(member, 1, find(member, '|', 1, true) - 1)
    if i <= acks then
      current[#current + 1] = member
      ids[#ids + 1] = id
    else
      others[#others + 1] = i
      other_ids[#others] = id
    end
  else
    letters[i] = 's'
  end
end
local requests = call('HLEN', cancel) > 0
local any_kept = call('HLEN', kept) + call('ZCARD', kept_at) > 0
local asked, records, base, idle, first = {}, {}, '0', false, nil
local composed = call('HLEN', flows) > 0
local owing, left, flow = composed and call('LLEN', flows_due) > 0, false, nil
local runs, run = {}, {}
for k = 1, composed and #current or 0 do
  -- A job of a composition that is acknowledged and gives nothing: its id and its token tell all that it takes. Those of
  -- one batch are told together.
  if find(current[k], '+', 1, true) then
    local of, kind, next_one = string.match(current[k], '^([^|]*)%.(c?)%d+|.*%+(%-?%d*)[|@]')
    if of and (of ~= run.of or kind ~= run.kind or next_one ~= run.next_one) then
      run = { of = of, kind = kind, next_one = next_one, n = 0 }
      runs[#runs + 1] = run
    end
    if of then run.n = run.n + 1 end
  end
end
if #others > 0 or owing or #runs > 0 then
  if #others > 0 then records = call('HMGET', running, unpack(other_ids)) end
  if requests and #others > 0 then asked = call('HMGET', cancel, unpack(other_ids)) end
  base = sequence(seq)
  if not base then return redis.error_reply(SPOILT) end
  idle = nothing_waits(ready, beside)
  first = earliest(delayed)
  call('HLEN', jobs)
  call('HLEN', failed)
  call('HLEN', unique)
  call('ZCARD', failed_at)
  call('XLEN', unreadable)
  call('LLEN', suspects)
  call('LLEN', wake)
  if composed then
    flow = composing()
    flow.check()
  end
end
call('DEL', none) -- never exists: a script that has written is not refused when memory is full

local fields, ended, ended_at, times, suspected = {}, {}, {}, {}, {}
local soonest = math.huge
for k = 1, #others do
  local i, id, record = others[k], other_ids[k], records[k]
  local at = 5 + acks + 4 * (i - acks - 1)
  local verb, member, detail, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local _, _, held, deliveries, free, crashes = find(member, '^[^|]+|(%d+)|(%d+)|(%d+)|(%d+)|')
  local inc, limit, expiry, priority, rest, stop, how, result, _
  if record then inc, _, _, _, limit, expiry, _, priority, rest, stop = header(record) end
  if not record or not held or (inc and inc ~= held) then
    letters[i] = 's'
  else
    current[#current + 1] = member
    ids[#ids + 1] = id
    if not inc or verb == 's' then
      call('XADD', unreadable, '*', 'id', id, 'reason', inc and detail or 'header', 'record', record)
      how = 'f'
    elseif verb == 'k' then
      ending(id, kind == '' and 's' or 'n', inc, rest, detail)
      how, result = 's', kind == '' and detail
    elseif verb == 'd' then
      how = 'c'
      ending(id, 'c', inc, rest, '')
    elseif verb == 'f' or verb == 'e' then
      how = 'f'
      ending(id, verb, inc, rest, kind)
      ended[#ended + 1] = id
      ended[#ended + 1] = headed(inc, deliveries, free, crashes, limit, expiry, decimal(now), priority, rest)
        .. '\n' .. detail .. sub(record, stop)
      ended_at[#ended_at + 1] = decimal(now)
      ended_at[#ended_at + 1] = id
    elseif asked[k] == inc or (flow and rest ~= '' and flow.off(rest)) then
      letters[i], how = 'c', 'c'
      ending(id, 'c', inc, rest, '')
    else
      if kind == 'free' then free = decimal(free + 1) end
      if kind == 'crashed' then crashes = decimal(crashes + 1) end
      local since = decimal(now)
      if detail ~= '0' then
        since = decimal(later + detail)
        soonest = math.min(soonest, later + detail)
        times[#times + 1] = since
        times[#times + 1] = delayed_member(id, inc, priority)
      elseif kind == 'crashed' and tonumber(crashes) == tonumber(limit) - 1 then
        suspected[#suspected + 1] = id .. '|' .. inc
      else
        enter(id .. '|' .. inc, priority)
      end
      fields[#fields + 1] = id
      fields[#fields + 1] = headed(inc, deliveries, free, crashes, limit, expiry, since, priority, rest)
        .. sub(record, stop)
    end
    if how and not inc then
      rest = flow and flow.remains(id, record, member) or ''
    elseif how and rest ~= '' then
      unlock(rest, id, inc)
    end
    if how and flow and rest ~= '' then flow.ended(rest, how, result) end
  end
end

-- Destinations first, then the leases.
if #fields > 0 then
  call('HSET', jobs, unpack(fields))
  if #suspected > 0 then call('RPUSH', suspects, unpack(suspected)) end
  if #times > 0 then call('ZADD', delayed, unpack(times)) end
end
local soonest_fresh = math.huge
if flow then
  for k = 1, #runs do
    flow.several_ended(runs[k].of, runs[k].n, runs[k].kind == '', runs[k].next_one, 's')
  end
  base, left, soonest_fresh = flow.work(base)
end
if first then
  local entered = entering() + #suspected > 0
  enter_all(ready, beside, seq, base)
  if left or (entered and (idle or #suspected > 0)) or math.min(soonest, soonest_fresh) < first then wake_up(wake) end
end
if #ended > 0 then
  call('HSET', failed, unpack(ended))
  call('ZADD', failed_at, unpack(ended_at))
end
if any_kept and #ids > 0 then call('HDEL', kept, unpack(ids)) end -- the progress of what ran
keep_all(kept, kept_at)
answer = concat(letters)
if not find(answer, '[^d]') then answer = '' end
remember(client, answer)
if #current > 0 then
  call('ZREM', leased, unpack(current))
  call('HDEL', running, unpack(ids))
  if requests then call('HDEL', cancel, unpack(ids)) end
  leave_line(ready, current)
end
return { 'done', answer }
