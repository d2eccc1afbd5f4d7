-- A group of charges: read each key, decide each charge, write all or none. It
-- is the contract in the comment of store.Store, in Lua. ${…} is filled in by
-- script.go.
--
-- KEYS[i] is the key of charge i. ARGV begins with the clock, if it is the
-- caller's; then for each charge stand the twin's number, the mode, cost, age
-- and the params.
${clock}
local twins, widths = {${twins}}, {${widths}}
local SHADOW, STRIKE = 1, 2

-- What is known of charge i stands at place i of each of these.
local raws, args, limited, limit, remaining, retry, reset = {}, {}, {}, {}, {}, {}, {}
local made, value = {}, {}

local function decide(i, cost)
  local arg = args[i]
  limited[i], limit[i], remaining[i], retry[i], reset[i], value[i] = twins[ARGV[arg] + 0](cost, ARGV[arg + 3] + 0, arg + 3, raws[i])
  made[i] = cost ~= 0 and not limited[i]
  return limited[i] ~= nil
end

local refusals, refuser, arg = 0, 0, ${first}
for i = 1, #KEYS do
  local mode, cost = ARGV[arg + 1] + 0, ARGV[arg + 2] + 0
  args[i], raws[i] = arg, redis.call('GET', KEYS[i])
  if mode == STRIKE then cost = 0 end
  if not decide(i, cost) then return redis.error_reply(${foreign}) end
  if limited[i] and mode ~= SHADOW then refusals, refuser = refusals + 1, i end
  arg = arg + 4 + widths[ARGV[arg] + 0]
end

if refusals > 0 then
  for i = 1, #KEYS do
    if ARGV[args[i] + 1] + 0 == STRIKE then
      local cost = math.min(ARGV[args[i] + 2] + 0, remaining[i])
      if cost > 0 and (refusals > 1 or refuser ~= i) then decide(i, cost) end
    elseif made[i] then
      decide(i, 0)
      limited[i], retry[i] = false, 0
    end
  end
end

local reply = {}
for i = 1, #KEYS do
  if made[i] and value[i] then
    redis.call('SET', KEYS[i], value[i], 'PX', math.ceil(reset[i] / 1000))
  elseif raws[i] and made[i] then
    redis.call('DEL', KEYS[i])
  elseif raws[i] and reset[i] + ${phase} > (redis.call('PTTL', KEYS[i]) + 1) * 1000 then
    redis.call('PEXPIRE', KEYS[i], math.ceil(reset[i] / 1000))
  end
  local n = 5 * i
  reply[n - 4], reply[n - 3], reply[n - 2], reply[n - 1], reply[n] = limited[i] and 1 or 0, limit[i], remaining[i], retry[i], reset[i]
end
return reply
