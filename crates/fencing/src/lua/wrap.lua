-- wrap: run the caller's script behind the gate. Follows the caller's script, as the function
-- `body`, and gate.lua.
--
-- KEYS  the caller's, then watermark
-- ARGV  the caller's, then fence, lease, ttl of the watermark, ms (0: none)
-- Returns  {verdict, the script's answer}   {'failed', message}
--
-- Why: the script sees its own KEYS and ARGV, as if there were no gate, and the FENCE and LEASE
-- that were admitted. Its failure is told apart from the server's; before Redis 7 an error is a
-- text, since then a table.
local keys, args = {}, {}
for at = 1, #KEYS - 1 do keys[at] = KEYS[at] end
for at = 1, #ARGV - 3 do args[at] = ARGV[at] end

local ran, answer = pcall(body, keys, args, fence, lease)
local message = type(answer) == 'table' and answer.err
if not ran or message then return {'failed', tostring(message or answer)} end
return {verdict, answer}
