-- Moves a schedule's cursor over its slots and pushes their jobs, if nobody else was first and the last slot is due.
-- Memory limits may refuse it.
-- KEYS: client jobs running failed seq ready beside delayed wake kept kept:at unique schedules:at
-- ARGV: number repeated ttl name seen(ms) slot(ms) overlap(1: jobs are pushed although the last one has not ended), then
--       for each job: id options envelope, as push has them
-- Reply: {done|repeated|old, d fired, o the last job has not ended, m missed: nothing has changed}
-- include: base
-- include: decimal
-- include: now
-- include: numbered
-- include: sequence
-- include: header
-- include: due
-- include: line
-- include: wake
local client, jobs, running, failed, seq, ready, beside, delayed, wake, kept, kept_at, unique =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local schedules_at = KEYS[13]
-- include: unique
-- include: storing

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local name, seen, slot, overlap = ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
local cursor, paused, last = string.match(call('HGET', schedules_at, name) or '', '^(%d+)|([01])|(.*)$')
answer = 'd'
local looked
if cursor ~= seen or paused == '1' or tonumber(slot) > now then
  answer = 'm'
elseif #ARGV > 7 then
  if not overlap and last ~= '' and call('HEXISTS', jobs, last) + call('HEXISTS', running, last) > 0 then
    answer = 'o'
  else
    looked = look_at(7)
    if not looked then return redis.error_reply(SPOILT) end
    last = ARGV[#ARGV - 2]
  end
end
-- What is written first, here or there, memory limits refuse: then nothing has been.
if looked then store(looked) end
if answer ~= 'm' then call('HSET', schedules_at, name, slot .. '|0|' .. last) end
remember(client, answer)
return { 'done', answer }
