-- The twin of meter.go: the same arithmetic in the same steps, see there for
-- what it means and for why it is exact. Numbers are doubles here, and no whole
-- number goes beyond 2^53; a product that does is compared only, and is then
-- larger than any number it is compared with. There are no functions, because
-- making one costs a server more than what it would do.
local burst, unit, drain, tick = p1, p2, p3, p4
local full, level, at = burst * unit, 0, now
if s1 and s1 >= 1 and s3 >= 1 then -- no meter keeps anything else
  level, at = s1, s2
  if s3 ~= unit then -- rescale, rounded up
    local rest = level % s3
    local units = (level - rest) / s3
    if units >= burst then
      level = full
    else
      -- rest * unit / s3 by long division: the product needs more than 53 bits.
      local q, r, bits, n = 0, 0, {}, unit
      while n > 0 do
        local bit = n % 2
        bits[#bits + 1] = bit
        n = (n - bit) / 2
      end
      for i = #bits, 1, -1 do
        q = q * 2
        if r >= s3 - r then q, r = q + 1, r - (s3 - r) else r = r * 2 end
        if bits[i] == 1 then
          if r >= s3 - rest then q, r = q + 1, r - (s3 - rest) else r = r + rest end
        end
      end
      if r > 0 then q = q + 1 end
      level = units * unit + q
    end
  end
  if level > full then level = full end
  if at <= now then
    local rest = (now - at) % tick
    local drained = (now - at - rest) / tick * drain
    if drained >= level then
      level, at = 0, now
    else
      level, at = level - drained, now - rest
    end
  else
    local rest = full % drain
    local span = ((full - rest) / drain + (rest > 0 and 1 or 0)) * tick
    if at - now > span or at - now > 9007199254740992 then level, at = 0, now end
  end
end

local after, over = level, 0
limited, limit, retry, reset = false, burst, 0, 0
if cost > burst then
  limited, retry = true, -1
elseif cost > 0 then
  local room = full - cost * unit
  if level > room then
    limited = true
  else
    after = level + cost * unit
    if tick > 1 and unit > 1 and level < drain and at < now then at = now end
  end
  over = after - room
elseif cost == 0 then
  over = level - (full - unit)
  limited = over > 0
else
  local back = -cost
  if back > burst then back = burst end
  back = back * unit
  if age < 0 then age = 0 end
  local slack = (tick - tick % 2) / 2
  if slack > 10000 then slack = 10000 end
  if now > at then slack = slack + now - at end -- what was taken after the last tick is all there
  age = age - slack
  if age < 0 then age = 0 end
  local rest = age % tick
  local drained = ((age - rest) / tick + (rest > 0 and 1 or 0)) * drain
  if drained >= back then back = 0 else back = back - drained end
  if back > level then back = level end
  after = level - back
end
if after > 0 then
  local rest = after % drain
  reset = at - now + ((after - rest) / drain + (rest > 0 and 1 or 0)) * tick
  if reset > 9007199254740992 then reset = 9007199254740992 end
  n1, n2, n3 = after, at, unit
end
-- answers
remaining = (full - after - (full - after) % unit) / unit
if over > 0 then
  local rest = over % drain
  retry = at - now + ((over - rest) / drain + (rest > 0 and 1 or 0)) * tick
  if retry > 9007199254740992 then retry = 9007199254740992 end
end
