-- Deletes a key that the module keeps, and nothing else: a DEL would also take
-- what the module ends the server over.
local kept = redis.call('GET', KEYS[1])
if not kept then return 0 end
if not string.match(kept, '^%d+$') then
  return redis.error_reply('WEIRSTATE a key holds something else than a state of its policy')
end
return redis.call('DEL', KEYS[1])
