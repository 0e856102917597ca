-- What is kept of jobs, by id: `letter|inc|ended ms|until ms|result` of one that has ended (s succeeded, n succeeded
-- without a result, f failed, e expired, c cancelled; of a failure its reason stands in the result's place), or
-- `p|inc|fraction|note` of one that is running. `kept:at` holds the ends by the time until which they are kept.
local ends, ends_at = {}, {}

-- The ms for which the end of a job is kept, by the rest of its header: nothing when it is not.
local function keep_of(rest)
  local digits = string.match(rest, '^|(%d+)')
  if digits and digits ~= '0' and #digits <= 15 then return tonumber(digits) end
  return nil
end

-- Notes that a job has ended, if its header asks to keep that.
local function ending(id, letter, inc, rest, result)
  local keep = keep_of(rest)
  if keep then
    local till = decimal(later + keep)
    ends[#ends + 1] = id
    ends[#ends + 1] = letter .. '|' .. inc .. '|' .. decimal(now) .. '|' .. till .. '|' .. result
    ends_at[#ends_at + 1] = till
    ends_at[#ends_at + 1] = id
  end
end

-- Forgets at most 100 ends whose time is over. No settlement keeps more than that, so they do not become more and more.
local function forget_old(kept, kept_at)
  local old = call('ZRANGEBYSCORE', kept_at, '-inf', decimal(now), 'LIMIT', 0, 100)
  if #old > 0 then
    call('HDEL', kept, unpack(old))
    call('ZREM', kept_at, unpack(old))
  end
end

-- Writes what was noted.
local function keep_all(kept, kept_at)
  if #ends > 0 then
    forget_old(kept, kept_at)
    call('HSET', kept, unpack(ends))
    call('ZADD', kept_at, unpack(ends_at))
  end
end
