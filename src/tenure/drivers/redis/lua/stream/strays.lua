-- Strays: entries that are pending without a lease, left by a claim that broke off or by somebody's hand. A lease has one
-- pending entry, but for those of suspects and from before a clear; so the gap between the two numbers tells whether
-- there may be any, and only when it has changed are the pending entries looked through, 100 a call, to the end. (One
-- that comes just as a suspect is leased is found when that lease ends.) They are told, not claimed: XAUTOCLAIM would
-- take those of living leases, too, again and again. `beside` keeps how far that has come.
local last_read, pending = group_of(ready)
local swept = call('HMGET', beside, 'gap', 'from')
local gap = decimal((pending or 0) - call('ZCARD', leased))

-- A foreign entry as one text: its fields and values, each behind its length and a colon, and followed by a comma.
local function whole(fields)
  local parts = {}
  for i = 1, #fields do parts[i] = #fields[i] .. ':' .. fields[i] .. ',' end
  return concat(parts)
end

-- Lets strays of waiting jobs enter the line anew, and drops the others; tells whether there is more to look through.
local function strays()
  local from = swept[2] ~= '' and swept[2]
  if (pending or 0) == 0 or (not from and gap == (swept[1] or '0')) then return false end
  local page = call('XPENDING', ready, GROUP, from and '(' .. from or '-', '+', 100)
  local spent, entries, ids, incs = {}, {}, {}, {}
  for i = 1, #page do
    local entry = page[i][1]
    local found = call('XRANGE', ready, entry, entry)[1]
    local member = found and job_of(found[2])
    if member then
      local bar = find(member, '|', 1, true)
      entries[#entries + 1] = entry
      ids[#entries], incs[#entries] = sub(member, 1, bar - 1), sub(member, bar + 1)
    else
      if found then set_aside(entry, whole(found[2]), 'entry') end
      spent[#spent + 1] = entry
    end
  end
  if #ids > 0 then
    local held, waiting = call('HMGET', running, unpack(ids)), call('HMGET', jobs, unpack(ids))
    for i = 1, #ids do
      local id, inc = ids[i], incs[i]
      if not held[i] or header(held[i]) ~= inc then
        spent[#spent + 1] = entries[i]
        local mine, _, _, _, _, _, _, priority = header(waiting[i] or '')
        local unreadable_here = waiting[i] and not mine
        if unreadable_here or (mine == inc and not call('ZSCORE', delayed, delayed_member(id, inc, priority))) then
          enter(id .. '|' .. inc)
        end
      end
    end
  end
  local more = #page == 100
  call('HSET', beside, 'gap', decimal((from and swept[1] or gap) - #spent), 'from', more and page[100][1] or '')
  if #spent > 0 then drop(ready, spent) end
  return more
end
