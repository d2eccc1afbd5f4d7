-- One charge under one algorithm: what driver.lua does for a group, without its
-- loops and tables. ${…} is filled in by script.go.
--
-- The reply is one text, which costs a server far less than five numbers:
-- whether the charge was refused, the time, and the state that was found. From
-- these, Decide in Go makes the answer that the twin would make here.
local key, argv, call = KEYS[1], ARGV, redis.call
${clock}
local raw = call('GET', key)
local ${state}, ${words}
if raw then
  ${words} = string.match(raw, '${pattern}')
  if not w1 then return redis.error_reply(${foreign}) end
  ${state} = ${numbers}
end
local ${inputs}
local limited, limit, remaining, retry, reset, ${next}
do
${decision}
end
if limited or cost == 0 then
  if raw and reset + ${phase} > (call('PTTL', key) + 1) * 1000 then
    call('PEXPIRE', key, math.ceil(reset / 1000))
  end
elseif n1 then
  call('PSETEX', key, math.ceil(reset / 1000), ${value})
elseif raw then
  call('DEL', key)
end
local answer = limited and '1 ' or '0 '
if raw then return answer .. text .. ' ' .. raw end
return answer .. text
