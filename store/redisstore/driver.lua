-- A group of charges: read each key, decide each charge, write all or none. It
-- is the contract in the comment of store.Store, in Lua. ${…} is filled in by
-- script.go.
--
-- KEYS[i] is the key of charge i. ARGV begins with the clock, if it is the
-- caller's; then for each charge stand the twin's number, the mode, cost, age
-- and the params. The reply has five numbers for each charge.
local keys, argv, call = KEYS, ARGV, redis.call
${clock}
${log}local twins, widths = {${twins}}, {${widths}}
local SHADOW, STRIKE, FORGET = 1, 2, 3

-- Of charge i: where its arguments begin, the state as it was found, whether it
-- is made, the state to write. The tables have their size from the beginning: to
-- let one grow costs more than a decision.
local first, found, made, value = {${row}}, {${row}}, {${row}}, {${row}}
local reply = {${reply}}

local function decide(i, cost)
  local arg, n = first[i], 5 * i
  local limited
  limited, reply[n - 3], reply[n - 2], reply[n - 1], reply[n], value[i] = twins[argv[arg] + 0](cost, argv[arg + 3] + 0, arg + 3, found[i]${key})
  reply[n - 4], made[i] = limited and 1 or 0, cost ~= 0 and not limited
  return limited
end

local refusals, refuser, arg = 0, 0, ${first}
for i = 1, #keys do
  local mode, cost = argv[arg + 1] + 0, argv[arg + 2] + 0
  first[i], found[i] = arg, ${read}
  if mode == STRIKE then cost = 0 end
  local limited = decide(i, cost)
  if limited == nil then return redis.error_reply(${foreign}) end
  if mode == FORGET then -- the answer of a key never seen, which this becomes
    made[i], value[i] = true, nil
    reply[5 * i - 4], reply[5 * i - 2], reply[5 * i - 1], reply[5 * i] = 0, reply[5 * i - 3], 0, 0
  elseif limited and mode ~= SHADOW then
    refusals, refuser = refusals + 1, i
  end
  arg = arg + 4 + widths[argv[arg] + 0]
end

if refusals > 0 then
  for i = 1, #keys do
    if argv[first[i] + 1] + 0 == STRIKE then
      local cost = math.min(argv[first[i] + 2] + 0, reply[5 * i - 2])
      if cost > 0 and (refusals > 1 or refuser ~= i) then decide(i, cost) end
    elseif made[i] then
      decide(i, 0)
      reply[5 * i - 4], reply[5 * i - 1] = 0, 0
    end
  end
end

${stale}for i = 1, #keys do
  local reset = reply[5 * i]
  if made[i] and value[i] then
    ${write}
  elseif found[i] and made[i] then
    call('${delete}', keys[i])
  elseif found[i] and reset + ${phase} > (call('PTTL', keys[i]) + 1) * 1000 then
    call('PEXPIRE', keys[i], math.ceil(reset / 1000))
  end
end
return reply
