-- A sliding log is a sorted set with a member for each unit and the unit's time
-- as its score: what sliding_log.go keeps as a list, decided the same way. It
-- finds places by their rank, so that no charge reads the whole log. ${…} is
-- filled in by script.go.
--
-- log is called like a twin, with the size of the set as its state. Beside the
-- answers it returns what keep has to do. Among the units that count, the i-th
-- oldest, from 0, has the rank i - used.
local function log(cost, age, arg, total, key)
  local count, period, spare, grace = argv[arg + 1] + 0, argv[arg + 2] + 0, argv[arg + 3] + 0, argv[arg + 4] + 0
  local used, member, newest = 0, nil, now - period
  if total then
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    member, newest = last[1], last[2] + 0
    if newest > now - period and newest - now <= period then
      used = call('ZCOUNT', key, string.format('(%.0f', now - period), '+inf')
    else
      newest = now - period
    end
  end
  local room = math.max(0, count - used)
  local limited, want = false, cost
  local plan = {used = used, spare = spare, taken = 0, back = 0}
  local at = used -- what is taken comes before the at-th
  if cost > count then
    return true, count, room, -1, math.max(0, newest - now + period)
  elseif cost > 0 then
    limited = cost > room
    if not limited then
      if newest > now then
        at = call('ZCOUNT', key, string.format('(%.0f', now - period), text)
        member = at > 0 and call('ZRANGE', key, at - used - 1, at - used - 1)[1]
      end
      plan.taken, plan.number = cost, 0
      if at > 0 and string.sub(member, 1, #text + 1) == text .. '-' then
        plan.number = (tonumber(string.sub(member, #text + 2)) or -1) + 1
      end
    end
  elseif cost == 0 then
    limited, want = room < 1, 1
  elseif age < period and used > 0 then
    plan.first = math.max(0, used - call('ZCOUNT', key, string.format('%.0f', now - age - grace), '+inf'))
    plan.back = math.min(-cost, used - plan.first)
  end
  local left = used + plan.taken - plan.back
  local function leaves(i)
    if i >= at then return period end -- a charge never waits for more than went before it, and itself
    return call('ZRANGE', key, i - used, i - used, 'WITHSCORES')[2] - now + period
  end
  local remaining, retry, reset = math.max(0, count - left), 0, 0
  if want > 0 and want > remaining then retry = leaves(left + want - count - 1) end
  if plan.taken > 0 then
    reset = math.max(newest - now, 0) + period
  elseif plan.back > 0 and left > 0 and left == plan.first then -- the newest go
    reset = leaves(left - 1)
  elseif left > 0 then
    reset = newest - now + period
  end
  return limited, count, remaining, retry, reset, left > 0 and plan
end

-- keep makes a charge. Of what has left it takes away no more than a few units
-- beside those that come or go, and a whole log is left to another thread: no
-- charge makes the server wait for one big delete.
local function keep(key, plan, total, reset)
  local used = plan.used
  if total and used == 0 then
    call('UNLINK', key)
  elseif total then
    if plan.back > 0 then call('ZREMRANGEBYRANK', key, plan.first - used, plan.first - used + plan.back - 1) end
    local drop = math.min(total - used, plan.taken + plan.back + plan.spare)
    if drop > 0 then call('ZREMRANGEBYRANK', key, 0, drop - 1) end
  end
  local made = 0
  while made < plan.taken do
    local units = {}
    for n = made, math.min(made + 500, plan.taken) - 1 do
      units[#units + 1] = text
      units[#units + 1] = string.format('%s-%08d', text, plan.number + n)
    end
    call('ZADD', key, unpack(units))
    made = made + 500
  end
  call('PEXPIRE', key, math.ceil(reset / 1000))
end
