-- Workers: the caller, the sites that each owns, and the transfer of sites. The last call of each is remembered with its reply.

function ownership.worker_key(worker) return PREFIX.worker .. worker end

function ownership.now_ms()
  if ownership.clock then return ownership.clock end  -- in tests
  local time = call("TIME")
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

function ownership.owned_key(worker) return PREFIX.owned .. worker end
-- The number of a worker, and the reply of its last call if this one repeats it; nothing if the worker has expired.
function ownership.caller(args)
  local number, last, reply = unpack(call("HMGET", ownership.worker_key(args.worker), "number", "call", "reply"), 1, 3)
  return tonumber(number or nil), last and tonumber(last) == args.number and unpack_one(reply) or nil
end

function ownership.remembered(args, reply)
  call("HSET", ownership.worker_key(args.worker), "call", args.number, "reply", pack(reply))
  return reply
end

-- Several workers share a collection. Each owns whole sites, so that it alone keeps their delays, and leases some of their URLs.
-- A worker expires some time after its last heartbeat (`workers`: when that was, in milliseconds of the server's clock).
-- A site with work and no owner is in `free`, by the time from which it may be requested by the server's clock, or, if nothing is due yet, in
-- `later`, by its first due time by the clocks of the workers. One that a person has paused is taken from `free` to `paused`.

function ownership.is_alive(worker) return call("ZSCORE", keys.workers, worker) ~= false end

-- Renew the heartbeat of a worker that prepares a run in many calls; false if it has expired.
function ownership.stays_alive(worker) return ownership.is_alive(worker) and call("ZADD", keys.workers, ownership.now_ms(), worker) ~= nil end

-- Offer a site without an owner to the workers.
function ownership.offer(site, not_before)
  local first = nil
  for queue_index = 0, QUEUES - 1 do
    if call("EXISTS", records.pending_key(site, queue_index)) == 1 then
      call("ZADD", keys.free, not_before, site)
      return
    end
    local at = records.first_due(site, queue_index)
    if at and (not first or at < first) then first = at end
  end
  if first then call("ZADD", keys.later, first * 1000, site) end
end

function ownership.release_site(worker, site, last_request_at, not_before)
  if call("HGET", keys.owner, site) ~= worker then return end
  call("HDEL", keys.owner, site)
  call("SREM", ownership.owned_key(worker), site)
  if last_request_at then call("HSET", keys.last_request, site, string.format("%.0f", last_request_at)) end
  local waiting = call("HGET", keys.claimed, site)
  if waiting then  -- it is reserved for that worker for a short time
    call("HDEL", keys.claimed, site)
    call("HSET", keys.kept, site, string.format("%.0f %.0f %s", ownership.now_ms() + 3000, not_before, waiting))
    not_before = math.max(not_before, ownership.now_ms() + 3000)
  end
  ownership.offer(site, not_before)
end

function ownership.expire(worker, now)
  for _, site in ipairs(call("SMEMBERS", ownership.owned_key(worker))) do
    ownership.release_site(worker, tonumber(site), now, 0)  -- it may have sent requests until now
  end
  local ids, number = {}, queue.worker_number(worker)
  local leases = call("HGETALL", keys.lease)
  for n = 1, #leases, 2 do
    local _, holder = cache.lease_of(leases[n + 1])
    if holder == number then ids[#ids + 1] = tonumber(leases[n]) end
  end
  for first = 1, #ids, 500 do queue.end_leases({unpack(ids, first, math.min(first + 499, #ids))}) end
  local at = call("HGET", ownership.worker_key(worker), "at")
  call("DEL", ownership.owned_key(worker), ownership.worker_key(worker))
  if at then  -- its late calls are refused, as long as a network may delay them
    call("HSET", ownership.worker_key(worker), "at", at)
    call("EXPIRE", ownership.worker_key(worker), 3600)
  end
  call("ZREM", keys.workers, worker)
end

function ownership.expire_workers(now, timeout_ms)
  local dead = call("ZRANGEBYSCORE", keys.workers, "-inf", now - timeout_ms)
  for _, worker in ipairs(dead) do ownership.expire(worker, now) end
  return dead
end

-- Begin a run, or correct its start to an earlier time.
function writes.begin_run(args)
  if not args.joins then waits.end_of_unreachable() end
  local began = args.joins and tonumber(call("GET", keys.run) or nil)
  if args.began and (not began or args.began < began) then
    call("SET", keys.run, args.began)
  elseif not began then
    call("DEL", keys.run)
  end
end

-- A worker starts. If others are running, it must use the same rules; else a new run begins: leased URLs are released, and sites given up in
-- the last run are tried again. Unbounded work is left to `release_deferred` and `offer_some`.
function writes.begin(args)
  local now = ownership.now_ms()
  ownership.expire_workers(now, args.timeout_ms)
  local first = true
  for _, other in ipairs(call("ZRANGE", keys.workers, 0, -1)) do
    if other ~= args.worker then
      first = false
      if call("HGET", ownership.worker_key(other), "ready") ~= "1" then return {"opening", other} end
      local rules = call("HGET", ownership.worker_key(other), "rules")
      if rules ~= args.rules then
        local unseen_ms = now - tonumber(call("ZSCORE", keys.workers, other))
        return unseen_ms > args.timeout_ms / 4 and {"opening", other} or {"refused", other, rules}
      end
    end
  end
  call("ZADD", keys.workers, now, args.worker)
  call("HSET", ownership.worker_key(args.worker), "rules", args.rules, "info", args.info, "since", now, "ready", first and 0 or 1,
    "number", call("HINCRBY", keys.counters, "workers", 1), "at", args.at)
  call("PERSIST", ownership.worker_key(args.worker))
  if first then
    if args.index then call("HSETNX", keys.index, args.index[1], args.index[2]) end
    local ids = {}
    for n, id in ipairs(call("HKEYS", keys.lease)) do ids[n] = tonumber(id) end
    for from = 1, #ids, 500 do queue.end_leases({unpack(ids, from, math.min(from + 499, #ids))}) end
    call("UNLINK", keys.run, keys.owner, keys.given_up, keys.free, keys.later, keys.paused, keys.deleted, keys.claimed,
      keys.kept)
    waits.end_of_unreachable()
  end
  return {first and "first" or "joined"}
end

-- Make some URLs that were deferred to the next run due at their time again. Returns 1 where there may be more.
function writes.release_deferred(args)
  if args.worker and not ownership.stays_alive(args.worker) then return false end
  local ids = call("SPOP", keys.deferred, args.limit)
  for n, id in ipairs(ids) do ids[n] = tonumber(id) end
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and not row[LEASE_UNTIL] and row[STATE] ~= PENDING and row[NEXT_FETCH] then
      cache.origin[id].key = nil  -- it has no queue position
      cache.touched[id] = cache.touched[id] or "position"
    end
  end
  flush()
  return #ids > 0 and 1 or 0
end

-- Offer some of the sites that have pending or due URLs, before other workers acquire any. Returns the cursor to continue; "0": complete.
function writes.offer_some(args)
  if not ownership.stays_alive(args.worker) then return false end
  local found = call("SSCAN", keys[args.kind], args.cursor, "COUNT", args.limit)
  for _, name in ipairs(found[2]) do
    local site, queue_index = string.match(name, "^(%d+):(%d+)$")
    if site and args.kind == "pending" then
      call("ZADD", keys.free, "LT", 0, site)
    elseif site then
      local at = records.first_due(site, queue_index)
      if at then call("ZADD", keys.later, "LT", at * 1000, site) end
    end
  end
  return found[1]
end

function writes.ready(args)
  if ownership.is_alive(args.worker) then call("HSET", ownership.worker_key(args.worker), "ready", 1) end
end

-- Record the heartbeat of a worker, with its report; false where it has expired.
function writes.heartbeat(args)
  local now = ownership.now_ms()
  if not ownership.is_alive(args.worker) then return false end
  call("ZADD", keys.workers, now, args.worker)
  call("HSET", ownership.worker_key(args.worker), "report", args.report)
  call("HSET", keys.deleted, args.worker, args.deleted)
  local deleted = 0
  for _, count in ipairs(call("HVALS", keys.deleted)) do deleted = deleted + tonumber(count) end
  ownership.expire_workers(now, args.timeout_ms)
  local owned = 0
  local workers = call("ZRANGE", keys.workers, 0, -1)
  for _, worker in ipairs(workers) do owned = owned + call("SCARD", ownership.owned_key(worker)) end
  local site_count = owned + call("ZCARD", keys.free)
  local running, retrying = {}, 0
  for _, queue_indexes in ipairs(args.queue_indexes) do
    for _, queue_index in ipairs(queue_indexes) do running[queue_index] = true end
  end
  local retries = call("HGETALL", keys.retries)
  for n = 1, #retries, 2 do
    local site, queue_index = string.match(retries[n], "(%d+):(%d+)")
    if running[tonumber(queue_index)] and call("SISMEMBER", keys.given_up, site) == 0 and not waits.is_paused(tonumber(site)) then
      retrying = retrying + tonumber(retries[n + 1])
    end
  end
  local claimed, claims = {}, call("HGETALL", keys.claimed)  -- sites of this worker that others wait for
  for n = 1, #claims, 2 do
    local owner = call("HGET", keys.owner, claims[n])
    if not owner or not ownership.is_alive(claims[n + 1]) then
      call("HDEL", keys.claimed, claims[n])
    elseif owner == args.worker then
      claimed[#claimed + 1] = sites.name(tonumber(claims[n]))
    end
  end
  local numbers, waiting = call("HMGET", keys.counters, "forgotten", "edits", "broken"), {}
  for n, sink in ipairs(SINKS) do
    waiting[n] = call("ZCARD", outbox.key(sink, "delete")) + call("ZCARD", outbox.key(sink, "push"))
  end
  return {#workers, site_count, call("HLEN", keys.lease), call("ZCARD", keys.free),
    retrying, tonumber(numbers[1] or 0) + tonumber(numbers[2] or 0),
    waiting, tonumber(numbers[3] or 0), deleted - args.deleted, call("HGET", keys.meta, "site_pauses") or "", claimed}
end

-- Release sites of a worker: for each its name, the milliseconds since the last request (-1: none by this worker) and those that it must
-- wait, and the leased URLs that were not fetched.
function writes.release_sites(args)
  local now = ownership.now_ms()
  for _, one in ipairs(args.sites) do
    local site = sites.find(one[1])
    queue.end_leases(queue.held_of(args.worker, one[4]))
    if site then ownership.release_site(args.worker, site, one[2] >= 0 and now - one[2] or nil, now + one[3]) end
  end
end

-- Give up a site for all workers in this run, as its owner did.
function writes.give_up(args)
  local site = sites.find(args.site)
  if not site or call("HGET", keys.owner, site) ~= args.worker then return end
  call("SADD", keys.given_up, site)
  call("ZREM", keys.free, site)
  call("ZREM", keys.later, site)
end

-- Set a value if it is `before`, nil: if there is none. Returns 1 or 0.
function writes.replace_meta(args)
  if (call("HGET", keys.meta, args.name) or nil) ~= args.before then return 0 end
  call("HSET", keys.meta, args.name, args.after)
  return 1
end

-- Offer those of some paused sites that are not paused any more. Returns the cursor to continue; "0": complete.
function writes.offer_resumed(args)
  local found = call("SSCAN", keys.paused, args.cursor, "COUNT", args.limit)
  for _, site in ipairs(found[2]) do
    site = tonumber(site)
    if not waits.is_paused(site) then
      call("SREM", keys.paused, site)
      if call("HEXISTS", keys.owner, site) == 0 then ownership.offer(site, 0) end
    end
  end
  return found[1]
end

-- URLs of another scheme were found at a site that was given up for its robots.txt.
function writes.resume(args)
  local site = sites.find(args.site)
  if not site or call("SREM", keys.given_up, site) == 0 or call("HEXISTS", keys.owner, site) == 1 then return end
  ownership.offer(site, 0)
end

-- Whether a worker is the one that sends a sink its orders: the first that calls this, until it expires. `location` is that of its index: an
-- index at another location has none of the documents that were sent to this one.
function writes.drains(args)
  local location = call("HGET", keys.index, args.sink)
  if location and location ~= args.location then return {0, location} end
  local drainer = call("HGET", keys.drain, args.sink)
  if drainer ~= args.worker then
    if not ownership.is_alive(args.worker) or (drainer and ownership.is_alive(drainer)) then return {0, location or args.location} end
    call("HSET", keys.drain, args.sink, args.worker)
    call("HSET", keys.index, args.sink, args.location)
  end
  return {1, args.location}
end

-- Return the worker that sends a sink its orders, and the time since its last heartbeat; nothing where there is none.
function reads.sender(args)
  local drainer = call("HGET", keys.drain, args.sink)
  local heartbeat_at = drainer and call("ZSCORE", keys.workers, drainer)
  return heartbeat_at and {drainer, ownership.now_ms() - tonumber(heartbeat_at)} or {}
end

-- Expire a worker whose process has ended on the caller's machine.
function writes.expire(args) ownership.expire(args.worker_name, ownership.now_ms()) end

function writes.leave(args)
  local now = ownership.now_ms()
  ownership.expire_workers(now, args.timeout_ms)
  if ownership.is_alive(args.worker) then ownership.expire(args.worker, now) end
end

function reads.workers()
  local now, reply, urls = ownership.now_ms(), {}, {}
  for _, lease in ipairs(call("HVALS", keys.lease)) do
    local _, holder = cache.lease_of(lease)
    urls[holder] = (urls[holder] or 0) + 1
  end
  for _, worker in ipairs(call("ZRANGE", keys.workers, 0, -1)) do
    local seen = call("HMGET", ownership.worker_key(worker), "info", "since", "report")
    reply[#reply + 1] = {worker, seen[1] or "", seen[2] or "", seen[3] or "", now - tonumber(call("ZSCORE", keys.workers, worker)),
      call("SCARD", ownership.owned_key(worker)), urls[queue.worker_number(worker)] or 0}
  end
  return reply
end

-- A worker may need a site without URLs, or one that another worker owns: the robots.txt of other sites may redirect there. `claimed` has by
-- site the worker that waits for it; `kept` the worker for which a released site is reserved, and until when.

-- Assign these sites to a worker, without URLs, unless other workers own them, which get the claim with their next heartbeat.
function writes.claim(args)
  if not ownership.caller(args) then return false end
  local now, acquired = ownership.now_ms(), {}
  for _, name in ipairs(args.sites) do
    local site = sites.number(name)
    local owner = call("HGET", keys.owner, site)
    local not_before = 0
    if not owner then
      local till, before, waiting = string.match(call("HGET", keys.kept, site) or "", "^(%d+) (%d+) (.*)$")
      if till and tonumber(till) > now and ownership.is_alive(waiting) then
        owner, not_before = waiting, tonumber(before)
      else
        not_before = tonumber(call("ZSCORE", keys.free, site) or 0)
      end
    end
    if owner and owner ~= args.worker then
      local first = call("HGET", keys.claimed, site)  -- first come, first served
      if not (first and ownership.is_alive(first)) then call("HSET", keys.claimed, site, args.worker) end
    else
      call("HDEL", keys.kept, site)
      call("ZREM", keys.free, site)
      call("ZREM", keys.later, site)
      call("HSET", keys.owner, site, args.worker)
      call("SADD", ownership.owned_key(args.worker), site)
      waits.bounded(site, args.now)
      local it = queue.site_reply(site, {""}, now, false)
      it[4] = math.max(it[4], not_before > now and args.now + math.ceil((not_before - now) / 1000) or 0)  -- a failing site waits
      acquired[#acquired + 1] = it
    end
  end
  return acquired
end
