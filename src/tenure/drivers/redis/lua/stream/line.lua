-- beside: ready:sweep
-- The ready line as a stream with one consumer group. An entry has one field, `j`, which holds `id|inc`. The entry of a
-- leased job is pending, and the token of its lease ends in '@' and the entry's id. What is leased, by whom and until
-- when, `leased` alone tells: nobody asks how long an entry is pending, on whom, or how often it was delivered.
local GROUP = 'tenure'
local lined, fresh = {}, {}

-- Notes that `id|inc` enters the tail of the line.
local function enter(member)
  lined[#lined + 1] = member
end

-- How many were noted.
local function entering()
  return #lined
end

-- Writes what was noted.
local function enter_all(ready)
  for i = 1, #lined do
    fresh[call('XADD', ready, '*', 'j', lined[i])] = true
  end
end

-- Returns the `id|inc` of an entry, by its fields; nothing for an entry that is not ours.
local function job_of(fields)
  if #fields == 2 and fields[1] == 'j' and find(fields[2], '^[^|]+|%d+$') then return fields[2] end
  return nil
end

-- Returns the entry that was read last, and how many are pending; nothing while there is no group.
local function group_of(ready)
  if call('EXISTS', ready) == 0 then return nil end
  for _, group in ipairs(call('XINFO', 'GROUPS', ready)) do
    local told = {}
    for i = 1, #group, 2 do told[group[i]] = group[i + 1] end
    if told['name'] == GROUP then return told['last-delivered-id'], told['pending'] end
  end
  return nil
end

local function waits_behind(ready, last)
  return #call('XRANGE', ready, '(' .. (last or '0-0'), '+', 'COUNT', 1) > 0
end

-- Tells whether nothing waits in the line.
local function nothing_waits(ready)
  return not waits_behind(ready, (group_of(ready)))
end

local function check_line(ready)
  call('XLEN', ready)
end

-- Takes entries that were read out of the stream.
local function drop(ready, entries)
  call('XACK', ready, GROUP, unpack(entries))
  call('XDEL', ready, unpack(entries))
end

-- Takes the entries of leases that have ended out of the stream.
local function leave_line(ready, members)
  local entries, jobs_left = {}, {}
  for i = 1, #members do
    local _, _, entry = find(members[i], '@(%d+%-%d+)|')
    if entry then
      entries[#entries + 1] = entry
      jobs_left[#entries] = string.match(members[i], '^[^|]+|%d+')
    end
  end
  if #entries == 0 then return end
  if call('XACK', ready, GROUP, unpack(entries)) == #entries then
    call('XDEL', ready, unpack(entries))
    return
  end
  -- The stream was cleared, or its group lost, since they were claimed: an id may be another job's by now.
  for i = 1, #entries do
    local entry = call('XRANGE', ready, entries[i], entries[i])[1]
    if entry and not fresh[entries[i]] and job_of(entry[2]) == jobs_left[i] then call('XDEL', ready, entries[i]) end
  end
end
