-- Whole numbers as text. Lua's own conversion would write 1e+15 from there on.
local function decimal(n)
  return fmt('%.0f', n)
end

-- Adds a small number to a decimal string, exactly, also where Lua's numbers (doubles) end at 2^53.
local function plus(digits, n)
  if #digits < 16 then
    return fmt('%.0f', digits + n)
  end
  local low, high = tonumber(sub(digits, -9)) + n, tonumber(sub(digits, 1, -10))
  if low >= 1000000000 then
    low, high = low - 1000000000, high + 1
  end
  return fmt('%.0f%09.0f', high, low)
end
