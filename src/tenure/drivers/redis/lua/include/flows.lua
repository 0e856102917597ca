-- Compositions. All of them have this queue as their home, and all their jobs are in it.
-- `flows` holds of each `phase|kind|asked|total|succeeded|failed|cancelled|left|created|finished|over|retention|first|name`
-- (phase: p is being stored, a has started, d is being forgotten unstarted; asked: 1 when it was cancelled; left: nodes
-- that have not ended; times in ms, 0 for none; first: the lowest number of a node). `flows:nodes` holds what has not
-- been released, by `id:number`: a gate as `g|needs|next,next…`, a job as `j|needs|when|next|flags|options\nenvelope`
-- (when and options as a push has them, the first letter of each flag: t takes, g gives, a runs in any case). Who was
-- told of some endings, but not of all, has `id:number:told` there: their number, and 1 if one was bad.
-- `flows:due` lists endings that are still to be told: `id:how many:bad:number,number…:` and `=input`, if there is one.
-- `flows:until` holds those of which all has ended, and those that have not started, by when to forget them.
local known, changed = {}, {}

-- Returns what is stored of a composition, or false.
local function composition_of(id)
  local found = known[id]
  if found == nil then
    local phase, kind, asked, total, s, f, c, left, created, finished, over, retention, first, name = string.match(
      call('HGET', flows, id) or '',
      '^(%l)|(%l)|([01])|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%-?%d+)|(.*)$'
    )
    found = phase and {
      phase = phase, kind = kind, asked = asked == '1', total = tonumber(total), s = tonumber(s), f = tonumber(f),
      c = tonumber(c), left = tonumber(left), created = created, finished = finished, over = over,
      retention = tonumber(retention), first = tonumber(first), name = name,
    } or false
    known[id] = found
  end
  return found
end

-- Returns a composition as it is stored.
local function packed(c)
  return concat({
    c.phase, c.kind, c.asked and '1' or '0', decimal(c.total), decimal(c.s), decimal(c.f), decimal(c.c),
    decimal(c.left), c.created, c.finished, c.over, decimal(c.retention), decimal(c.first), c.name,
  }, '|')
end

-- Tells whether a composition can be read: it has started, and its time is not over.
local function readable(c)
  return c and c.phase == 'a' and (c.over == '0' or tonumber(c.over) + c.retention > now)
end

-- Tells whether a job must not run any more because its composition was cancelled.
local function called_off(rest)
  local id, number, _, flags = flow_of(rest)
  if not id or (sub(number, 1, 1) == '-' and find(flags, 'a', 1, true)) then return false end
  local c = composition_of(id)
  return c and c.asked
end

local telling, telling_one = {}, {}

-- Notes that these nodes (one, or several with commas between) are to be told of n endings.
local function tell(id, n, targets, bad, input)
  local one = not input and id .. ':' .. targets
  local entry = one and telling_one[one]
  if entry then
    entry.count, entry.bad = entry.count + n, entry.bad or bad
  else
    entry = { id = id, count = n, bad = bad, targets = targets, input = input, from = 1, one = one }
    telling[#telling + 1] = entry
    if one then telling_one[one] = entry end
  end
end

-- Counts the end of some nodes (s succeeded, f failed, c cancelled) and notes whom they tell: n of them, all counted, or
-- none of them.
local function nodes_ended(id, n, counted, next, how, input)
  local c = composition_of(id)
  if not c then return end
  changed[id] = true
  c.left = math.max(0, c.left - n)
  if counted then
    c[how] = c[how] + n
    if c.s + c.f + c.c == c.total and c.finished == '0' then c.finished = decimal(now) end
  end
  if next ~= '' then tell(id, n, next, how ~= 's', input) end
end

local function node_ended(id, number, next, how, input)
  nodes_ended(id, 1, sub(number, 1, 1) ~= '-', next, how, input)
end

-- Takes the end of a job, by the rest of its header. `result` is what it returned, nothing if that cannot be passed on.
local function member_ended(rest, how, result)
  local id, number, next, flags = flow_of(rest)
  if id then node_ended(id, number, next, how, find(flags, 'g', 1, true) and result or nil) end
end

-- Checks the keys' types, as long as nothing was written.
local function check_flows()
  call('HLEN', flows)
  call('HLEN', flows_nodes)
  call('LLEN', flows_due)
  call('ZCARD', flows_until)
end

-- Writes the compositions that were changed.
local function keep_flows()
  for id in pairs(changed) do
    local c = known[id]
    if c.phase == 'a' and c.left == 0 and c.over == '0' then
      c.over = decimal(now)
      call('ZADD', flows_until, decimal(now + c.retention), id)
    end
    call('HSET', flows, id, packed(c))
  end
  changed = {}
end
