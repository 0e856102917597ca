-- A page of a listing: at most `limit` jobs, at most a thousand entries more that are looked at for them, and of their
-- records at most a mebibyte and those that were read with the last one. ARGV: limit …, see the scripts.
local limit, looks, room = tonumber(ARGV[1]), tonumber(ARGV[1]) + 1000, 1048576
local found = 0
local page = { decimal(now), '', '', '' }

-- Reads sorted sets; an entry begins at the given character of its member.
local function by_score(line, start)
  return function(first, last)
    local raw, entries, scores = call('ZRANGE', line, first, last, 'WITHSCORES'), {}, {}
    for i = 1, #raw, 2 do
      entries[#entries + 1] = sub(raw[i], start)
      scores[#scores + 1] = raw[i + 1]
    end
    return entries, scores
  end
end

-- Adds the jobs of a line's entries (`id|inc…`) from `first` to `last` to the page: those whose record is there. Returns
-- where the next page begins; nothing when all were looked at.
local function add(records, first, last, read)
  while first <= last do
    if looks <= 0 then return first end
    local entries, scores = read(first, math.min(first + 9, last))
    local n = #entries
    if n == 0 then return nil end
    looks = looks - n
    local ids, incs = {}, {}
    for i = 1, n do
      local _, _, id, inc = find(entries[i], '^([^|]*)|?(%d*)')
      ids[i], incs[i] = id, inc
    end
    local kept = call('HMGET', records, unpack(ids))
    for i = 1, n do
      local inc = kept[i] and header(kept[i])
      -- One whose header cannot be read is listed too: it stands there until a claim meets it.
      if kept[i] and (not inc or inc == incs[i]) then
        if found == limit or room <= 0 then return first + i - 1 end
        found, room = found + 1, room - #kept[i]
        page[#page + 1] = entries[i]
        page[#page + 1] = scores and scores[i] or ''
        page[#page + 1] = kept[i]
      end
    end
    first = first + n
  end
  return nil
end

-- A place in a sorted set is a score and the beginning of a member, up to its first bar: what lies before it may come
-- and go, and a lease's token is no part of it.
local function begins_behind(number, line, rank)
  local before = rank > 0 and call('ZRANGE', line, rank - 1, rank - 1, 'WITHSCORES') or {}
  page[2], page[3] = number, before[2] or ''
  page[4] = before[1] and sub(before[1], 1, math.min(find(before[1], '|', 1, true) or 100, 100)) or ''
end

-- Lua itself compares texts as the server's locale has it; the server, byte by byte.
local function precedes(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- Returns the rank of the first member behind a place.
local function rank_behind(line, score, mark)
  local low, high = call('ZCOUNT', line, '-inf', '(' .. score), call('ZCOUNT', line, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call('ZRANGE', line, middle, middle)[1]
    if precedes(mark, sub(member, 1, #mark)) then high = middle else low = middle + 1 end
  end
  return low
end
