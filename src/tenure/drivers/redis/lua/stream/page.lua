-- Lists the stream: a place in it is the entry that was looked at last.
local function list_line()
  local begin = start == 3 and place ~= '' and place or group_of(ready) or '0-0'
  local from, passed = begin, {}
  local function read(first, last)
    local raw, entries = call('XRANGE', ready, '(' .. from, '+', 'COUNT', last - first + 1), {}
    for i = 1, #raw do
      from = raw[i][1]
      passed[first + i - 1] = from
      entries[i] = job_of(raw[i][2]) or ''
    end
    return entries
  end
  local index = add(jobs, 0, call('XLEN', ready) - 1, read)
  if index then page[2], page[3] = '3', passed[index - 1] or begin end
end
