-- P1: a client's last call number is kept with its answer, as `number|answer`. Tells 'repeated' and the answer for that
-- number, 'old' for a lower one and for one above 1 of which nothing is known, and nothing for a new call.
local number = tonumber(ARGV[1])
local function earlier(key)
  local kept = call('GET', key)
  if not kept then
    if number > 1 then return 'old' end
    return nil
  end
  local bar = find(kept, '|', 1, true)
  local last = bar and tonumber(sub(kept, 1, bar - 1))
  if not last or number < last then return 'old' end
  if number == last then return 'repeated', sub(kept, bar + 1) end
  return nil
end

local function remember(key, answer)
  call('SET', key, ARGV[1] .. '|' .. answer, 'PX', ARGV[3])
end
