-- The queue's sequence as a decimal string, or nothing when somebody has put something else there.
local function sequence(key)
  local digits = call('GET', key) or '0'
  if #digits > 18 or find(digits, '%D') or digits == '' then return nil end
  return digits
end
local SPOILT = 'WRONGVALUE the sequence of this queue is not a number'
