-- Handing out sites and their URLs to workers.

local function fill(worker, site, limit, args)
  local ids = {}
  for _, lanes in ipairs(args.lanes) do
    local found = {}
    for _, lane in ipairs(lanes) do
      if #found < limit then next_in(pending_key(site, lane), limit, nil, found) end
      if #found < limit then next_in(due_key(site, lane), limit, args.now, found) end
    end
    for _, id in ipairs(found) do ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    handed_out(id, args["until"])
    call("SADD", held_key(worker), id)
  end
  return ids
end

-- What a worker needs to know of a site that it takes.
local function site_told(site, ids, now)
  local name = site_name(site)
  local asked = tonumber(call("HGET", P .. "asked", site) or nil)
  local robots = {}
  for _, scheme in ipairs({"http", "https"}) do
    robots[#robots + 1] = call("HGET", P .. "robots", scheme .. " " .. name) or ""
  end
  return {name, asked and math.max(0, now - asked) or -1, tonumber(call("HGET", P .. "wait", site) or 0),
    call("HGET", P .. "health", name) or "", robots[1], robots[2], ids}
end

-- Lease more URLs of sites that a worker holds (`refill`: names and how many of each source), and up to `new` further sites, `limit` URLs
-- of each source there. `lanes` are the queues of each source that is not paused.
-- Returns what was taken, by site, and the sites of `refill` that have nothing. A call that is repeated returns what it did.
function ops.take(args)
  if not is_alive(args.worker) then return false end
  local taken = repeated(args)
  local now = now_ms()
  if not taken then
    local dry, sites = {}, {}
    for _, one in ipairs(args.refill) do
      local site = find_site(one[1])
      if site and call("HGET", P .. "owner", site) == args.worker then
        local ids = fill(args.worker, site, one[2], args)
        if #ids > 0 then sites[#sites + 1] = {site, ids} else dry[#dry + 1] = one[1] end
      else
        dry[#dry + 1] = one[1]
      end
    end
    for _, site in ipairs(call("ZRANGEBYSCORE", P .. "later", "-inf", args.now * 1000)) do
      call("ZREM", P .. "later", site)
      call("ZADD", P .. "free", "LT", 0, site)
    end
    local owned, workers = 0, call("ZRANGE", P .. "workers", 0, -1)
    for _, worker in ipairs(workers) do owned = owned + call("SCARD", owned_key(worker)) end
    local fair = math.ceil((owned + call("ZCARD", P .. "free")) / #workers)
    local wanted = math.min(args.new, fair - call("SCARD", owned_key(args.worker)))
    local tries = 0
    while wanted > 0 and tries < 2 * args.new do
      local site = call("ZRANGEBYSCORE", P .. "free", "-inf", now, "LIMIT", 0, 1)[1]
      if not site then break end
      site = tonumber(site)
      tries = tries + 1
      call("ZREM", P .. "free", site)
      local wait = tonumber(call("HGET", P .. "wait", site) or 0)
      if wait > args.now then
        call("ZADD", P .. "free", now + math.min(1000 * (wait - args.now), 5000), site)  -- by the clock that the others go by
      elseif call("SISMEMBER", P .. "silent", site) == 0 then
        local ids = fill(args.worker, site, args.limit, args)
        if #ids > 0 then
          call("ZREM", P .. "later", site)
          call("HSET", P .. "owner", site, args.worker)
          call("SADD", owned_key(args.worker), site)
          sites[#sites + 1] = {site, ids}
          wanted = wanted - 1
        else
          local at = nil
          for _, lanes in ipairs(args.lanes) do
            for _, lane in ipairs(lanes) do
              local first = first_due(site, lane)
              if first and (not at or first < at) then at = first end
            end
          end
          if at then call("ZADD", P .. "later", at * 1000, site) end
        end
      end
    end
    flush()
    taken = remembered(args, {sites, dry})
  end
  local told_sites = {}
  for _, one in ipairs(taken[1]) do told_sites[#told_sites + 1] = site_told(one[1], all_told(one[2]), now) end
  return {told_sites, taken[2]}
end
