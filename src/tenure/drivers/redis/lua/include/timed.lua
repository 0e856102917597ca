-- Lists the jobs of a sorted set by time; `read` may pass some over.
local function by_time(records, line, read)
  local from = ARGV[3] ~= '' and rank_behind(line, ARGV[3], ARGV[4]) or 0
  local rank = add(records, from, call('ZCARD', line) - 1, read or by_score(line, 1))
  if rank then begins_behind('1', line, rank) end
  return page
end
