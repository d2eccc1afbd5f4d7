-- The twin of ban.go: the same arithmetic in the same steps.
local strikes, within = p1, p2
local at, used, ban, span = now, 0, 0, within
if p3 > span then span = p3 end
if s1 and s2 >= 1 and s3 >= 0 and s1 - now <= span then
  if s3 > 0 then
    if s3 > now - s1 then at, used, ban = s1, strikes, s3 end
  elseif within > now - s1 then
    at, used = s1, s2
    if used > strikes then used = strikes end
  end
end

local after = used
limited, limit, retry, reset = false, strikes, 0, 0
if cost > strikes then
  limited, retry = true, -1
elseif cost > 0 then
  if cost > strikes - used then
    limited = true
  else
    after = used + cost
    if after == strikes then
      ban = p3
      if now > at then ban = ban + now - at end
    end
  end
elseif cost == 0 then
  limited = used >= strikes
else
  local slack = (within - within % 2) / 2
  if slack > 10000 then slack = 10000 end
  if now > at then slack = slack + now - at end
  if age <= slack then
    after = used + cost
    if after < 0 then after = 0 end
    if after < used and ban > 0 then
      ban = 0
      if now - at >= within then after = 0 end
    end
  end
end
local left = at - now + within
if ban > 0 then left = at - now + ban end
if after > 0 then
  reset = left
  n1, n2, n3 = at, after, ban
end
-- answers
remaining = strikes - after
local want = cost
if want == 0 then want = 1 end
if want > remaining and want > 0 and want <= strikes then retry = left end
