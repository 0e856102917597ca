-- Stores jobs once (P1): those whose ids exist in any state are held, and nothing of them changes; so is a unique job
-- while another with its text waits or runs.
-- KEYS: client jobs running failed seq ready beside delayed wake kept kept:at unique
-- ARGV: number repeated ttl, then for each job: id options envelope
--       options: '' or `delay ms|priority|crash limit (0: unset)|expires in ms (0: never)|keep ms (0: not)`,
--       of a unique job then `|` and its text
-- Reply: {done|repeated|old, answer, 1 when these are the queue's first jobs};
--        answer: '' when all are stored, else one letter a job: s stored, h held, u held by another job with
--        the same text; behind the letters, for each u, a blank and that job's id
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
-- include: unique
-- include: storing

local state, answer = earlier(client)
if state then return { state, answer or '' } end

local looked = look_at(3)
if not looked then return redis.error_reply(SPOILT) end
store(looked)
remember(client, looked.told)
return { 'done', looked.told, looked.base == '0' and '1' or '0' }
