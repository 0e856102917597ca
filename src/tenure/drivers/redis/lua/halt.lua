-- One step of cancelling a composition: the first lets nothing more of it begin, and each ends some of its counted jobs
-- that wait and requests it of those that run, at most 100 and no more than fit into a mebibyte (and one).
-- KEYS: client jobs running failed seq ready beside delayed wake cancel kept kept:at unique flows flows:nodes flows:due flows:until none
-- ARGV: number repeated ttl id from: the number to begin with, '' in the first step
-- Reply: {done|repeated|old, the number to go on with; '' at the end, n when it is unknown or has ended}
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

call('HLEN', jobs)
call('HLEN', running)
call('HLEN', failed)
call('LLEN', wake)
call('HLEN', kept)
call('ZCARD', kept_at)
call('HLEN', unique)
check_flows()
local base = sequence(seq)
if not base then return redis.error_reply(SPOILT) end
call('HLEN', cancel)
call('ZCARD', delayed)
local id = ARGV[4]
local c = composition_of(id)
call('DEL', none) -- never exists: a script that has written is not refused when memory is full

answer = ''
if ARGV[5] == '' then
  if readable(c) and c.finished == '0' then
    c.asked, changed[id] = true, true
  else
    answer, c = 'n', nil
  end
end

-- Ends a job that has been released, if it is still this composition's; returns how many bytes were read.
local function halted(number)
  local job = id .. '.' .. number
  local record = call('HGET', jobs, job)
  local waits = record
  if not record then record = call('HGET', running, job) end
  if not record then return 0 end
  local inc, _, _, _, _, _, _, priority, rest = header(record)
  local mine, its_number = flow_of(rest or '')
  if mine ~= id or its_number ~= number then return #record end
  if waits then
    ending(job, 'c', inc, rest, '')
    unlock(rest, job, inc)
    call('ZREM', delayed, delayed_member(job, inc, priority))
    call('HDEL', jobs, job)
    call('HDEL', cancel, job)
    member_ended(rest, 'c')
  else
    call('HSET', cancel, job, inc)
  end
  return #record
end

if c then
  local from, bytes = tonumber(ARGV[5]) or 0, 1048576
  local last = math.min(from + 100, c.total)
  while from < last and bytes > 0 do
    local number = decimal(from)
    local key = id .. ':' .. number
    local node = call('HGET', flows_nodes, key)
    if node then
      spent[key] = true
      spent_nodes[#spent_nodes + 1] = key
      spent_nodes[#spent_nodes + 1] = key .. ':told'
      node_ended(id, number, string.match(node, '^j|%d+|%l|(%-?%d*)|') or '', 'c')
      bytes = bytes - #node
    else
      bytes = bytes - halted(number)
    end
    from = from + 1
  end
  if from < c.total then answer = decimal(from) end
  keep_all(kept, kept_at)
  advance(base)
end
remember(client, answer)
return { 'done', answer }
