-- Lists the list, and what stands beside it: the priorities above 0 before it, those below behind it.
local function ranked(number, from, to)
  if start == number and place ~= '' then from = rank_behind(beside, place, mark) end
  local rank = add(jobs, from, to - 1, by_score(beside, 18))
  if rank then begins_behind(decimal(number), beside, rank) end
  return rank
end

local function list_line()
  if start <= 2 and ranked(2, 0, call('ZCOUNT', beside, '-inf', '(0')) then return end
  if start <= 3 and listed(3, ready, 'ready') then return end
  ranked(4, call('ZCOUNT', beside, '-inf', '0'), call('ZCARD', beside))
end
