-- The first line of a record: inc|deliveries|free|crashes|crash limit|expiry|at|priority, then whatever later versions
-- add (each part begins with '|', and is carried through). The envelope behind it is never read.
-- Returns all fields as text, the rest, and the position of the line's end; nothing for a line that cannot be one.
local function header(record)
  local stop = find(record, '\n', 1, true)
  if not stop or stop > 1024 then return nil end
  local _, last, inc, deliveries, free, crashes, limit, expiry, at, priority, rest =
    find(record, '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%-?%d+)([^\n]*)\n')
  if not last or #inc > 19 or #deliveries > 9 or #free > 9 or #crashes > 9 or #limit > 9 then return nil end
  if #expiry > 15 or #at > 15 or #priority > 4 or (rest ~= '' and sub(rest, 1, 1) ~= '|') then return nil end
  local most = tonumber(deliveries)
  if tonumber(free) > most or tonumber(crashes) > most then return nil end
  return inc, deliveries, free, crashes, limit, expiry, at, priority, rest, last
end

local function headed(inc, deliveries, free, crashes, limit, expiry, at, priority, rest)
  return inc .. '|' .. deliveries .. '|' .. free .. '|' .. crashes .. '|' .. limit .. '|' .. expiry .. '|' .. at
    .. '|' .. priority .. rest
end
