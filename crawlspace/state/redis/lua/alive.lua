-- Who calls: one process alone, or one of several workers, each by its name. The last call of each is remembered with what it came to.

local ops = {}
local alive = {}

function alive.worker_key(worker) return PREFIX.worker .. worker end

local function now_ms()
  if ARGV[5] ~= "" then return tonumber(ARGV[5]) end  -- a test's
  local time = call("TIME")
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

function alive.owned_key(worker) return PREFIX.owned .. worker end
-- The number of a worker, and what its last call came to where this one repeats it; nothing where the worker is no more.
function alive.caller(args)
  local number, last, reply = unpack(call("HMGET", alive.worker_key(args.worker), "number", "call", "reply"), 1, 3)
  return tonumber(number or nil), last and tonumber(last) == args.number and unpack_one(reply) or nil
end

function alive.remembered(args, reply)
  call("HSET", alive.worker_key(args.worker), "call", args.number, "reply", pack(reply))
  return reply
end
