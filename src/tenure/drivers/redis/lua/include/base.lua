local call = redis.call
local sub, find, fmt, concat = string.sub, string.find, string.format, table.concat
