-- Texts, which name no function: those would be part of each program.
local READS = {
  ["due"] = true, ["first_due"] = true, ["orders"] = true, ["parked"] = true, ["get"] = true,
  ["get_ids"] = true, ["scan"] = true, ["urls"] = true, ["lost_links"] = true, ["counts"] = true,
  ["held_some"] = true, ["is_duplicate"] = true, ["workers"] = true, ["sender"] = true, ["documents"] = true,
  ["depths_of"] = true, ["scan_depths"] = true, ["orphans"] = true, ["scan_links"] = true, ["without_source"] = true,
  ["some_inheriting"] = true, ["ordered"] = true, ["in_index"] = true,
}

-- Another version of crawlspace may have other keys, or other values in them.
local format = call("GET", keys.format)
if format ~= tostring(FORMAT) then
  if format or call("HEXISTS", keys.counters, "urls") == 1 then return redis.error_reply("VERSION " .. (format or "of development")) end
  if not READS[ARGV[1]] then later("SET", keys.format, FORMAT) end
end

-- Each attempt of a worker's call has a number. One that arrives after a later one was abandoned by the worker, which has repeated it or has
-- expired since: after a network failure such attempts may arrive late.
local args = unpack_one(ARGV[2])
if args.at then
  local number, last = unpack(call("HMGET", alive.worker_key(args.worker), "number", "at"), 1, 2)
  if last and tonumber(last) > args.at then return redis.error_reply("LATE " .. ARGV[1] .. " comes after later calls of its worker") end
  if number then later("HSET", alive.worker_key(args.worker), "at", args.at) end
end
if not READS[ARGV[1]] then
  records.check_types()
  later("HINCRBY", keys.counters, ARGV[4] == "worker" and "writes" or "edits", 1)
end
local reply = ops[ARGV[1]](args)
write_all()
return reply
