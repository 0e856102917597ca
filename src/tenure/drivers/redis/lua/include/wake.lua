-- Leaves one marker for a waiting claim; a list with an element already there wakes nobody twice.
local function wake_up(key)
  if call('LLEN', key) == 0 then
    call('RPUSH', key, '1')
  end
end

-- Tells whether a time lies before all that the sorted set holds.
local function earliest(key)
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return tonumber(first[2]) or math.huge
end
