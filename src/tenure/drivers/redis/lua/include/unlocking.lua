-- Frees the text of a unique job that has ended, by the rest of its header, if it is the one that holds it.
local function unlock(rest, id, inc)
  local text = string.match(rest, '^|%d*|(%x+)')
  if text and call('HGET', unique, text) == id .. '|' .. inc then call('HDEL', unique, text) end
end
