-- Telling nodes of endings, and making jobs of those that were told of all. One call tells at most 100 nodes, and reads
-- no more of them than fit into a mebibyte (and one); what is left stands in `flows:due`.
local fresh_jobs, fresh_times, fresh_ids = {}, {}, {}
local fresh, soonest_fresh, base_fresh = 0, math.huge, '0'
local spent_nodes, spent, fresh_texts = {}, {}, {}

-- Makes a job of a node; tells whether it did: not when its id, or its text, is another's.
local function released(id, number, next, flags, options, input, envelope)
  local job = id .. '.' .. (sub(number, 1, 1) == '-' and 'c' .. sub(number, 2) or number)
  if call('HEXISTS', jobs, job) + call('HEXISTS', running, job) + call('HEXISTS', failed, job) > 0 then return false end
  local delay, priority, limit, expiry, keep, text =
    string.match(options, '^(%d+)|(%-?%d+)|(%d+)|(%d+)|(%d+)|?(%x*)$')
  if not delay then delay, priority, limit, expiry, keep, text = '0', '0', '0', '0', '0', '' end
  if text ~= '' and (fresh_texts[text] or holder_of(text)) then return false end
  fresh = fresh + 1
  local inc, since = plus(base_fresh, fresh), decimal(now)
  if text ~= '' then
    fresh_texts[text] = true
    call('HSET', unique, text, job .. '|' .. inc)
  end
  if expiry ~= '0' then expiry = decimal(later + expiry) end
  if delay ~= '0' then
    since = decimal(later + delay)
    soonest_fresh = math.min(soonest_fresh, later + delay)
    fresh_times[#fresh_times + 1] = since
    fresh_times[#fresh_times + 1] = delayed_member(job, inc, priority)
  else
    enter(job .. '|' .. inc, priority)
  end
  if not find(flags, 't', 1, true) then input = nil end
  local rest = '|' .. keep .. '|' .. text .. '|' .. id .. ':' .. number .. ':' .. next .. ':' .. flags .. ':'
    .. (input and decimal(#input) or '')
  fresh_ids[fresh] = job
  fresh_jobs[2 * fresh - 1] = job
  fresh_jobs[2 * fresh] = headed(inc, '0', '0', '0', limit, expiry, since, priority, rest) .. '\n' .. envelope
    .. (input or '')
  return true
end

-- Tells a node of so many endings; returns how many bytes were read.
local function told(entry, number)
  local id, count, bad = entry.id, entry.count, entry.bad
  local key = id .. ':' .. number
  local node = not spent[key] and call('HGET', flows_nodes, key)
  local c = node and composition_of(id)
  if not c then return 0 end
  local kind, needs, more = string.match(node, '^([gj])|(%d+)|()')
  if not kind then return #node end
  local partly
  if count < tonumber(needs) then
    partly = key .. ':told'
    local so_far, worse = string.match(call('HGET', flows_nodes, partly) or '', '^(%d+)|([01])$')
    if so_far then count, bad = count + so_far, bad or worse == '1' end
    if count < tonumber(needs) then
      call('HSET', flows_nodes, partly, decimal(count) .. '|' .. (bad and '1' or '0'))
      return #node
    end
  end
  spent[key] = true
  spent_nodes[#spent_nodes + 1] = key
  spent_nodes[#spent_nodes + 1] = partly
  if kind == 'g' then
    node_ended(id, number, sub(node, more), bad and 'f' or 's')
    return #node
  end
  local line = find(node, '\n', 1, true) or #node + 1
  local when, next, flags, options = string.match(sub(node, more, line - 1), '^(%l)|(%-?%d*)|(%l*)|(.*)$')
  local runs = when == 'a'
  if c.asked then runs = runs and sub(number, 1, 1) == '-' end
  if when == 's' then runs = not bad and not c.asked end
  if when == 'f' then runs = bad and not c.asked end
  if not (runs and released(id, number, next, flags, options, entry.input, sub(node, line + 1))) then
    node_ended(id, number, next, 'c')
  end
  return #node
end

local room, unfinished = { nodes = 100, bytes = 1048576 }, {}

-- Tells the nodes of an entry, one after the other, while there is room. What that ends is told at once behind it.
local function tell_all(entry)
  if entry.one then telling_one[entry.one] = nil end
  while entry.from <= #entry.targets and room.nodes > 0 and room.bytes > 0 do
    local number = string.match(entry.targets, '^[^,]*', entry.from)
    entry.from = entry.from + #number + 1
    room.nodes = room.nodes - 1
    local before = #telling
    room.bytes = room.bytes - told(entry, number)
    if #telling > before then
      local next_entry = telling[#telling]
      telling[#telling] = nil
      tell_all(next_entry)
    end
  end
  if entry.from <= #entry.targets then unfinished[#unfinished + 1] = entry end
end

local function line_of(entry)
  return concat({ entry.id, decimal(entry.count), entry.bad and '1' or '0', sub(entry.targets, entry.from),
    entry.input and '=' .. entry.input or '' }, ':')
end

-- Leaves what was noted to the next call; tells whether there was anything.
local function put_off()
  local lines = {}
  for i = 1, #telling do lines[i] = line_of(telling[i]) end
  telling, telling_one = {}, {}
  keep_flows()
  if #lines == 0 then return false end
  call('RPUSH', flows_due, unpack(lines))
  return true
end

-- Tells what was noted, then what is due, and writes all of it, but for the lines: that is for `enter_all`. Returns the
-- queue's sequence as it stands then, whether something is left, and when the first of them falls due that are delayed.
-- `base` is the sequence as it stood.
local function work_off(base)
  base_fresh = base
  local noted, taken = telling, 0
  telling = {}
  for i = 1, #noted do tell_all(noted[i]) end
  while room.nodes > 0 and room.bytes > 0 do
    local line = call('LINDEX', flows_due, taken)
    if not line then break end
    taken = taken + 1
    local id, count, bad, targets, input = string.match(line, '^([^:]+):(%d+):([01]):([%d,%-]+):(.*)$')
    if id then
      tell_all({ id = id, count = tonumber(count), bad = bad == '1', targets = targets, from = 1,
        input = sub(input, 1, 1) == '=' and sub(input, 2) or nil })
    end
  end
  local lines = {}
  for i = 1, #unfinished do lines[i] = line_of(unfinished[i]) end
  if #lines > 0 then call('RPUSH', flows_due, unpack(lines)) end
  if taken > 0 then call('LTRIM', flows_due, taken, -1) end
  if fresh > 0 then
    call('INCRBY', seq, decimal(fresh))
    call('HSET', jobs, unpack(fresh_jobs))
    if call('HLEN', kept) + call('ZCARD', kept_at) > 0 then
      -- The end of an earlier job with the same id must not be taken for this one's.
      call('HDEL', kept, unpack(fresh_ids))
      call('ZREM', kept_at, unpack(fresh_ids))
    end
    if #fresh_times > 0 then call('ZADD', delayed, unpack(fresh_times)) end
  end
  if #spent_nodes > 0 then call('HDEL', flows_nodes, unpack(spent_nodes)) end
  keep_flows()
  return plus(base, fresh), call('LLEN', flows_due) > 0, soonest_fresh
end
