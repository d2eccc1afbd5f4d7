-- One charge under one algorithm: what driver.lua does for a group, without its
-- loops and tables. ${…} is filled in by script.go.
--
-- The reply is one text, which costs a server far less than five numbers:
-- whether the charge was refused, the time, and the state that was found. From
-- these, Decide in Go makes the answer that the twin made here.
${clock}
local raw = redis.call('GET', KEYS[1])
local ${state}
if raw then
  ${state} = string.match(raw, '${pattern}')
  if not s1 then return redis.error_reply(${foreign}) end
  ${state} = ${numbers}
end
local ${inputs}
local limited, limit, remaining, retry, reset, ${next}
do
${twin}
end
if limited or cost == 0 then
  if raw and reset + ${phase} > (redis.call('PTTL', KEYS[1]) + 1) * 1000 then
    redis.call('PEXPIRE', KEYS[1], math.ceil(reset / 1000))
  end
elseif n1 then
  redis.call('SET', KEYS[1], ${value}, 'PX', math.ceil(reset / 1000))
elseif raw then
  redis.call('DEL', KEYS[1])
end
return (limited and '1 ' or '0 ') .. text .. (raw and ' ' .. raw or '')
