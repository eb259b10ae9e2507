-- The functions that a client calls, one for each operation: `FCALL name 1 beginning-of-keys arguments sinks caller time`.

local is_clean = false
local function forget_all()
  for _, forget in ipairs(forgets) do forget() end
end

-- Checks before every operation; returns an error reply if it must not run.
local function refusal(name, is_read, args)
  -- Another version of crawlspace may have other keys, or other values in them.
  local format = call("GET", keys.format)
  if format ~= tostring(FORMAT) then
    if format or call("HEXISTS", keys.counters, "urls") == 1 then return redis.error_reply("VERSION " .. (format or "of development")) end
    if not is_read then later("SET", keys.format, FORMAT) end
  end
  -- Each attempt of a worker's call has a number. One that arrives after a later one was abandoned by the worker, which has repeated it or
  -- has expired since: after a network failure such attempts may arrive late.
  if not args.at then return nil end
  local number, last = unpack(call("HMGET", ownership.worker_key(args.worker), "number", "at"), 1, 2)
  if last and tonumber(last) > args.at then return redis.error_reply("LATE " .. name .. " comes after later calls of its worker") end
  if number then later("HSET", ownership.worker_key(args.worker), "at", args.at) end
end

local function operation(name, run, is_read)
  return function(given_keys, given)
    if not is_clean then  -- the first call, or after an error
      forget_all()
      collectgarbage("setpause", 400)  -- each collection scans this whole library: less often, a record costs a tenth less
    end
    is_clean = false
    call, pack, unpack_one = redis.call, cmsgpack.pack, cmsgpack.unpack
    if P ~= given_keys[1] then
      P, keys, PREFIX = given_keys[1], of_collection(given_keys[1], NAMES.keys), of_collection(given_keys[1], NAMES.prefixes)
    end
    SINKS, ownership.clock = cjson.decode(given[2]), tonumber(given[4])
    local args = unpack_one(given[1])
    outbox.now = tonumber(args.now)
    local refused_with = refusal(name, is_read, args)
    if refused_with then return refused_with end
    if not is_read then
      records.check_types()
      later("HINCRBY", keys.counters, given[3] == "worker" and "writes" or "edits", 1)
    end
    local reply = run(args)
    if not is_read then write_all() end  -- a read leaves it to the next write to quarantine damaged records
    forget_all()
    is_clean = true
    return reply
  end
end

-- While a library is loaded, it has no functions of Lua's own, such as `pairs`.
local function register(names, from, is_read, flags)
  for n = 1, #names do
    local name = names[n]
    redis.register_function({function_name = LIBRARY .. "_" .. name, callback = operation(name, from[name], is_read), flags = flags})
  end
end

register({
  "counts", "depths_of", "documents", "due", "first_due", "get", "get_ids", "held_some", "held_urls", "in_index", "is_duplicate", "leading_text", "lost_links",
  "ordered", "orders", "orphans", "parked", "scan", "scan_depths", "scan_links", "sender", "some_inheriting", "urls", "without_source",
  "waiting_urls", "workers",
}, reads, true, {"no-writes"})
register({
  "add_archive_file", "begin", "begin_run", "claim", "delete_again", "discover", "drains", "enter_earlier", "give_up", "make_due_by", "make_retries_due_by",
  "heartbeat", "lease", "move_archived", "move_part", "offer_resumed", "offer_some", "park", "push_again", "quarantine", "ready", "reclassify", "record",
  "relink", "release_deferred", "replace_meta", "resume", "save_robots", "schedule", "set_due_by_age", "set_depths", "set_unreachable",
  "take", "unpark", "wait_site", "write_inherited",
}, writes, false, {})
-- These free memory, and are allowed on a server that is out of memory.
register({"acknowledge", "expire", "leave", "reclaim", "release", "release_sites", "withdraw"}, writes, false, {"allow-oom"})
