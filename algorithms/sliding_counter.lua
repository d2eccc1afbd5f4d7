-- The twin of sliding_counter.go: the same arithmetic in the same steps. a * b / c
-- is a division by digits of a, so many to a digit that no step needs more than
-- 53 bits: for most limits that is one.
local count, period = p1, p2
local at, start, current, previous = now, now - now % period, 0, 0
if s1 and s1 - now <= period then
  local window, was, before = s1 - s1 % period, s2, s3
  if was < 0 then was = 0 elseif was > count then was = count end
  if before < 0 then before = 0 elseif before > count then before = count end
  if window >= start then
    at, start, current, previous = s1, window, was, before
  elseif window == start - period then
    previous = was
  end
end

if cost < 0 then
  local back, taken = -cost, now
  if start > now then taken = start end
  if age > 0 then taken = taken - age end
  if taken >= start then
    if back > current then back = current end
    current = current - back
  elseif taken >= start - period then
    if back > previous then back = previous end
    previous = previous - back
  end
end

local share = 0
if previous > 0 then
  local gone = now - start
  if gone < 0 then gone = 0 end
  local a, b = previous, period - gone
  local base, digit, rest = (4503599627370496 - 4503599627370496 % period) / period, 1, 0
  while a >= digit * base do digit = digit * base end
  while digit >= 1 do
    local d = (a - a % digit) / digit
    local t = rest * base + d * b
    a, rest = a - d * digit, t % period
    share = share * base + (t - rest) / period
    digit = digit / base
  end
  if rest > 0 then share = share + 1 end
end

local left = count - current - share
local after = left
limited, limit, retry, reset = false, count, 0, 0
if cost > count then
  limited, retry = true, -1
elseif cost > 0 then
  if cost > left then limited = true else current, after = current + cost, left - cost end
elseif cost == 0 then
  limited = left < 1
end
if current > 0 then
  reset = start - now + 2 * period
elseif previous > 0 then
  reset = start - now + period
end
if reset > 0 then n1, n2, n3 = at, current, previous end
-- answers
remaining = after
if remaining < 0 then remaining = 0 end
local want = cost
if want == 0 then want = 1 end
if want > 0 and want > after and want <= count then
  local ahead, room, used = period, count - want - current, previous
  if room < 0 then ahead, room, used = 2 * period, count - want, current end
  local gone = 0
  if room >= used then
    gone = period
  else
    local a, base, digit, rest = period, (4503599627370496 - 4503599627370496 % used) / used, 1, 0
    while a >= digit * base do digit = digit * base end
    while digit >= 1 do
      local d = (a - a % digit) / digit
      local t = rest * base + d * room
      a, rest = a - d * digit, t % used
      gone = gone * base + (t - rest) / used
      digit = digit / base
    end
  end
  retry = start - now + ahead - gone
end
