-- Taking from a stream, for the process whose tokens begin with this consumer's name. Entries that bring no lease are
-- dropped, but for those of jobs that are leased: a group that was lost is made anew from the start of the stream.
local consumer = ARGV[9]
local spent = {}

local function take_line()
  if want > 0 and not last_read and call('EXISTS', ready) == 1 then
    call('XGROUP', 'CREATE', ready, GROUP, '0')
    last_read = '0-0'
  end
  while last_read and want > 0 and budget > 0 do
    local most = math.min(want, budget)
    local read = call('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', most, 'STREAMS', ready, '>')
    if not read then break end
    read = read[1][2]
    local entries, places, missed = {}, {}, {}
    for i = 1, #read do
      local member = job_of(read[i][2])
      if member then
        entries[#entries + 1] = member
        places[#entries] = '@' .. read[i][1]
      else
        set_aside(read[i][1], whole(read[i][2]), 'entry')
        spent[#spent + 1] = read[i][1]
        budget = budget - 1
      end
    end
    last_read = read[#read][1]
    if #entries > 0 then consider(entries, #entries, places, missed) end
    if #missed > 0 then
      local ids = {}
      for k = 1, #missed do ids[k] = string.match(entries[missed[k]], '^[^|]+') end
      local held = call('HMGET', running, unpack(ids))
      for k = 1, #missed do
        local inc = held[k] and header(held[k])
        if not inc or entries[missed[k]] ~= ids[k] .. '|' .. inc then
          spent[#spent + 1] = sub(places[missed[k]], 2)
        end
      end
    end
    if #read < most then break end
  end
end

local function drop_taken()
  if #spent > 0 then drop(ready, spent) end
end

local function more_waits()
  return waits_behind(ready, last_read)
end
