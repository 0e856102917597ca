-- At most one job with the same text waits or runs: `unique` tells of each text which job that is, as `id|inc`. That
-- counts only while this very incarnation is there, so what removes jobs whatever their number (a clear) frees their
-- texts in the same step; the text itself is taken away as they are swept.
local function unique_of(rest)
  return string.match(rest, '^|%d*|(%x+)')
end

-- Returns the id of the job that holds a text, or nothing.
local function holder_of(text)
  local _, _, id, inc = find(call('HGET', unique, text) or '', '^([^|]+)|(%d+)$')
  if not id then return nil end
  if header(call('HGET', running, id) or '') == inc or header(call('HGET', jobs, id) or '') == inc then return id end
  return nil
end
