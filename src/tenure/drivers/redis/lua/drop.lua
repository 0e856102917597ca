-- Removes records that were set aside, for good.
-- KEYS: client unreadable
-- ARGV: number repeated ttl key*
-- Reply: {done|repeated|old, one letter a key: y removed, n not there}
-- include: base
-- include: numbered
local client, unreadable = KEYS[1], KEYS[2]

local state, answer = earlier(client)
if state then return { state, answer or '' } end

call('XLEN', unreadable)
local letters = {}
-- The first write only removes: a script that has written is not refused when memory is full.
for i = 4, #ARGV do
  letters[i - 3] = call('XDEL', unreadable, ARGV[i]) == 1 and 'y' or 'n'
end
answer = concat(letters)
remember(client, answer)
return { 'done', answer }
