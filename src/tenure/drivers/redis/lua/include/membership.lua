-- A job's header has `id:number:next:flags:size` as the third part of its rest: size bytes at the record's end are not
-- the envelope but what the job before it returned. Without an id it is a job like any other, with an input.
-- Returns the four parts that tell the place in a composition, by the rest of a header; nothing for a job of none.
local function flow_of(rest)
  return string.match(rest, '^|%d*|%x*|([^:|]+):(%-?%d+):(%-?%d*):(%a*):')
end

-- Returns of a header that cannot be read as much as tells the job's place in a composition: by the end of its line, or
-- else by the member that is its lease; '' when neither does.
local function remains(job, record, member)
  local of, kind, number = string.match(job, '^(.+)%.(c?)(%d+)$')
  if not of then return '' end
  local place = of .. ':' .. (kind == 'c' and '-' or '') .. number .. ':'
  local line = string.match(sub(record, 1, 1024), '^[^\n]*')
  local rest = string.match(line, '|%d*|%x*|[^:|]+:%-?%d+:%-?%d*:%a*:%d*$')
  if rest and find(rest, '|' .. place, 1, true) then return rest end
  local next_one = string.match(member or '', '%+(%-?%d*)[|@]')
  return next_one and '|0||' .. place .. next_one .. '::' or ''
end

-- Returns the rest of a header without the place in a composition; what the job was given stays.
local function standalone(rest)
  local keep, text, size = string.match(rest, '^|(%d*)|(%x*)|[^:|]*:%-?%d*:%-?%d*:%a*:(%d*)$')
  if not keep then return rest end
  if size ~= '' then return '|' .. keep .. '|' .. text .. '|::::' .. size end
  if text ~= '' then return '|' .. keep .. '|' .. text end
  return keep ~= '0' and '|' .. keep or ''
end
