-- A group of charges: read each key, decide each charge, write all or none. It
-- is the contract in the comment of store.Store, in Lua. ${…} is filled in by
-- script.go.
--
-- KEYS[i] is the key of charge i. ARGV begins with the clock, if it is the
-- caller's; then for each charge stand the twin's number, the mode, cost, age
-- and the params.
${clock}
local twins = {${twins}}
local SHADOW, STRIKE = 1, 2

local function decide(c, cost)
  c.input[2] = cost
  local r = {c.twin.decide(unpack(c.input, 1, c.twin.inputs))}
  c.limited, c.limit, c.remaining, c.retry, c.reset = unpack(r, 1, 5)
  c.made = cost ~= 0 and not c.limited
  c.next = r[6] and {unpack(r, 6, 5 + c.twin.words)}
end

local charges, arg = {}, ${first}
local refusals, refuser = 0, 0
for i = 1, #KEYS do
  local twin = twins[tonumber(ARGV[arg])]
  local c = {twin = twin, key = KEYS[i], mode = tonumber(ARGV[arg + 1]), cost = tonumber(ARGV[arg + 2])}
  c.input = {now, 0, tonumber(ARGV[arg + 3])}
  arg = arg + 4
  for p = 1, twin.params do c.input[3 + p] = tonumber(ARGV[arg + p - 1]) end
  arg = arg + twin.params
  c.raw = redis.call('GET', c.key)
  if c.raw then
    local words = {string.match(c.raw, twin.pattern)}
    if not words[1] then return redis.error_reply(${foreign}) end
    for s, word in ipairs(words) do c.input[3 + twin.params + s] = tonumber(word) end
  end
  decide(c, c.mode == STRIKE and 0 or c.cost)
  if c.limited and c.mode ~= SHADOW then refusals, refuser = refusals + 1, i end
  charges[i] = c
end

if refusals > 0 then
  for i, c in ipairs(charges) do
    if c.mode == STRIKE then
      local cost = math.min(c.cost, c.remaining)
      if cost > 0 and (refusals > 1 or refuser ~= i) then decide(c, cost) end
    elseif c.made then
      decide(c, 0)
      c.limited, c.retry = false, 0
    end
  end
end

local reply = {}
for _, c in ipairs(charges) do
  if c.made and c.next then
    for w, n in ipairs(c.next) do c.next[w] = string.format('%.0f', n) end
    redis.call('SET', c.key, table.concat(c.next, ' '), 'PX', math.ceil(c.reset / 1000))
  elseif c.raw and c.made then
    redis.call('DEL', c.key)
  elseif c.raw and c.reset + ${phase} > (redis.call('PTTL', c.key) + 1) * 1000 then
    redis.call('PEXPIRE', c.key, math.ceil(c.reset / 1000))
  end
  for _, n in ipairs({c.limited and 1 or 0, c.limit, c.remaining, c.retry, c.reset}) do reply[#reply + 1] = n end
end
return reply
