-- What waits: in each site by source and shift, first what is pending in order of discovery, then what is due, earliest first.

local queue = {}

-- -1 where the worker is no more.
function queue.worker_number(worker) return tonumber(call("HGET", alive.worker_key(worker), "number") or -1) end

-- Return those of the URLs that a worker has leased.
function queue.held_of(worker, ids)
  local number, held = queue.worker_number(worker), {}
  prefetch(ids)
  for _, id in ipairs(ids) do
    if get(id) and cache.holders[id] == number then held[#held + 1] = id end
  end
  return held
end

function queue.end_leases(ids)
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and row[LEASE_UNTIL] then
      row[LEASE_UNTIL] = nil
      cache.touched[id] = cache.touched[id] or "place"
    end
  end
  flush()
end

function ops.release(args)
  local ids = args.ids
  if args.worker then  -- only those that it still has leased
    ids = queue.held_of(args.worker, args.ids)
  end
  queue.end_leases(ids)
end

function ops.reclaim(args)
  local keeps = {}
  for _, id in ipairs(args.keep) do keeps[id] = true end
  local ids, ended = {}, {}
  local leases = call("HGETALL", keys.lease)
  for n = 1, #leases, 2 do
    local id = tonumber(leases[n])
    if cache.lease_of(leases[n + 1]) <= args.now and not keeps[id] then ids[#ids + 1] = id end
  end
  prefetch(ids)
  for _, id in ipairs(ids) do
    if rows[id] then
      local name = sites.name(rows[id][SITE])
      ended[name] = (ended[name] or 0) + 1
    end
  end
  queue.end_leases(ids)
  local reply = {}
  for name, count in pairs(ended) do
    reply[#reply + 1] = name
    reply[#reply + 1] = count
  end
  return reply
end

function ops.due(args)
  local site, reply = sites.find(args.site), {}
  if not site then return reply end
  for queue_index = 0, QUEUES - 1 do
    local at = records.first_due(site, queue_index)
    if at then
      reply[#reply + 1] = queue_index
      reply[#reply + 1] = at
    end
  end
  return reply
end

-- Return for each `site:queue index` the site's name, and when the first URL there is due.
function ops.first_due(args)
  local reply = {}
  for _, place in ipairs(args.places) do
    local site, queue_index = string.match(place, "(%d+):(%d+)")
    reply[#reply + 1] = sites.name(tonumber(site))
    reply[#reply + 1] = records.first_due(site, queue_index) or -1
  end
  return reply
end

-- An expired worker may not know yet that it does not own a site any more.
function queue.holds(worker, site) return not worker or call("HGET", keys.owner, site) == worker end

function ops.wait_site(args)
  local site = sites.number(args.site)
  if not queue.holds(args.worker, site) and (args["until"] or 0) <= waits.of(site) then return end
  if args["until"] then
    call("HSET", keys.wait, site, string.format("%.0f %.0f", args["until"], args.wait_s or 0))
  else
    call("HDEL", keys.wait, site)
  end
end

-- Unless the site is another worker's, who knows better.
function ops.set_unreachable(args)
  local owner = args.worker and call("HGET", keys.owner, sites.find(args.site) or 0)
  if owner and owner ~= args.worker then return end
  if args.row then
    call("HSET", keys.unreachable, args.site, args.row)
  else
    call("HDEL", keys.unreachable, args.site)
  end
end

function ops.documents(args)
  local reply = {}
  for n, name in ipairs(args.sites) do reply[n] = tonumber(call("HGET", keys.documents, sites.find(name) or 0) or 0) end
  return reply
end

function ops.save_robots(args)
  if queue.holds(args.worker, sites.find(args.site) or 0) then call("HSET", keys.robots, args.key, args.entry) end
end
