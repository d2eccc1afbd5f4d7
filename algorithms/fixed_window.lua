-- The twin of fixed_window.go: the same arithmetic in the same steps.
local count, period = p1, p2
local at, used, phase, left = now, 0, 0, 0
if s1 and s2 > 0 and s1 - now <= period then
  if p3 >= 0 then phase = (s1 + p3) % period end
  left = s1 - now + period - phase
end
if left > 0 then
  at, used = s1, s2
  if used > count then used = count end
else
  phase = 0
  if p3 >= 0 then phase = (now + p3) % period end
  left = period - phase
end

local after = used
limited, limit, retry, reset = false, count, 0, 0
if cost > count then
  limited, retry = true, -1
elseif cost > 0 then
  if cost > count - used then limited = true else after = used + cost end
  if cost > count - after then retry = left end
elseif cost == 0 then
  if used >= count then limited, retry = true, left end
else
  local back, slack = -cost, phase
  if p3 < 0 then
    slack = (period - period % 2) / 2
    if slack > 10000 then slack = 10000 end
  end
  if now > at then slack = slack + now - at end
  if age > slack then back = 0 end
  if back > used then back = used end
  after = used - back
end
if after > 0 then
  reset = left
  n1, n2 = at, after
end
-- answers
remaining = count - after
