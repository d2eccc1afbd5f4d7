-- Gives back time, of a key that the module keeps: the nanoseconds since 1970 at
-- which it is as good as new, as text. They are more than a double holds, so they
-- are counted in two parts, milliseconds and nanoseconds. ARGV is what to give back,
-- in the same two. A key that would be as good as new goes; one that is gone stays
-- so. The module's own way, a negative quantity, leaves a key without end there.
local kept = redis.call('GET', KEYS[1])
if not kept or not string.match(kept, '^%d+$') or #kept < 7 then return 0 end
local ms, ns = string.sub(kept, 1, -7) - ARGV[1], string.sub(kept, -6) - ARGV[2]
if ns < 0 then ms, ns = ms - 1, ns + 1000000 end
local t = redis.call('TIME')
local now, past = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000, t[2] % 1000 * 1000
local left = ms - now -- rounded up
if ns > past then left = left + 1 end
if left < 1 then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], string.format('%.0f%06d', ms, ns), 'PX', left)
return 1
