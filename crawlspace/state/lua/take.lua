-- Handing out URLs, and sites to workers.

-- Lease the next URLs of one lane, until `found` has so many, each as it is told, and `ids_found` their ids. They stand nowhere but in that
-- lane, and no record of theirs changes: nothing of what `flush` does is needed.
local function hand_out(site, lane, latest, limit, until_, found, ids_found)
  local key = latest and due_key(site, lane) or pending_key(site, lane)
  local before, gone, struck, lone = #found, {}, 0, pack(site_name(site), 0, false)
  while #found < limit do
    local many = math.min(limit - #found, 500)
    local members
    if latest then
      members = call("ZRANGEBYSCORE", key, "-inf", latest, "LIMIT", 0, many)
    else
      members = call("ZRANGE", key, 0, many - 1)
    end
    if #members == 0 then break end
    local ids, leases = {}, {}
    for n, member in ipairs(members) do ids[n] = latest and tonumber(member) - MEMBER or member end
    local texts = call("HMGET", P .. "url", unpack(ids))
    local handed = call("HMGET", P .. "handed", unpack(ids))
    for n, text in ipairs(texts) do
      local id, fine, row = tonumber(ids[n]), false, nil
      if text then
        local is_page
        fine, is_page = looks(text)
        if fine and (latest or is_page) then
          row = decoded(text)
          fine = row ~= nil
        end
      end
      if fine then
        leases[#leases + 1], leases[#leases + 2] = id, until_
        local winner = row and winner_of(id, row)
        local rest = (winner or handed[n]) and pack(site_name(site), winner or 0, handed[n]) or lone
        found[#found + 1] = as_told(id, text, rest)
        ids_found[#ids_found + 1] = id
        if latest then
          local name = "state " .. row[STATE]
          gone[name] = (gone[name] or 0) + 1
        end
      elseif text then
        put_aside(id, text)
      end
    end
    if #leases > 0 then call("HSET", P .. "lease", unpack(leases)) end  -- first: a server that is full refuses it, and nothing has changed
    call("ZREMRANGEBYRANK", key, 0, #members - 1)
    if not latest then struck = struck + #members end
  end
  if #found > before then call("HINCRBY", P .. "n", "state leased", #found - before) end
  if struck > 0 then gone["state " .. PENDING] = struck end
  for name, count in pairs(gone) do call("HINCRBY", P .. "n", name, -count) end
  if call("EXISTS", key) == 0 then call("SREM", P .. (latest and "due" or "pending"), site .. ":" .. lane) end
end

local ALL_LANES = {}
for lane = 0, 29 do ALL_LANES[lane + 1] = lane end

-- The lanes of a site in which something stands, by number.
local function lanes_with(kind, site)
  local places, has = {}, {}
  for n, lane in ipairs(ALL_LANES) do places[n] = site .. ":" .. lane end
  for n, is in ipairs(call("SMISMEMBER", P .. kind, unpack(places))) do has[n - 1] = is == 1 end
  return has
end

local function hand_out_of(site, lanes, limit, args, pending, due)
  local found, ids = {}, {}
  for _, lane in ipairs(lanes) do
    if pending[lane] and #found < limit then hand_out(site, lane, nil, limit, args["until"], found, ids) end
    if due[lane] and #found < limit then hand_out(site, lane, args.now, limit, args["until"], found, ids) end
  end
  return found, ids
end

-- Records that were told and that nobody understands.
function ops.put_aside(args)
  for _, id in ipairs(args.ids) do
    local text = call("HGET", P .. "url", id)
    if text then put_aside(id, text) end
  end
end

function ops.lease(args)
  local site = find_site(args.site)
  if not site then return all_as_told({}) end
  local lanes = args.lane and {args.lane} or ALL_LANES
  return all_as_told((hand_out_of(site, lanes, args.limit, args, lanes_with("pending", site), lanes_with("due", site))))
end

local function fill(worker, site, limit, args)
  local told, ids, pending, due = {}, {}, lanes_with("pending", site), lanes_with("due", site)
  for _, lanes in ipairs(args.lanes) do
    local found, ids_found = hand_out_of(site, lanes, limit, args, pending, due)
    for n, one in ipairs(found) do told[#told + 1], ids[#ids + 1] = one, ids_found[n] end
  end
  for first = 1, #ids, 500 do call("SADD", held_key(worker), unpack(ids, first, math.min(first + 499, #ids))) end
  return ids, all_as_told(told)
end

-- Of the sites that have work, rounded up.
local function fair_share()
  local sites, workers = call("ZCARD", P .. "free"), call("ZRANGE", P .. "workers", 0, -1)
  for _, worker in ipairs(workers) do sites = sites + call("SCARD", owned_key(worker)) end
  return math.ceil(sites / #workers)
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
-- Returns what was taken, by site, the sites of `refill` that have nothing, and how many sites are this worker's share where others can get
-- none but from workers with more than theirs; -1 where some are free. A call that is repeated returns what it did.
function ops.take(args)
  if not is_alive(args.worker) then return false end
  local taken = repeated(args)
  local now = now_ms()
  local told = {}  -- by site: what has been leased there
  if not taken then
    local dry, sites = {}, {}
    local function got(site, limit)
      local ids, urls = fill(args.worker, site, limit, args)
      if #ids > 0 then sites[#sites + 1] = {site, ids} end
      told[site] = urls
      return #ids > 0
    end
    for _, one in ipairs(args.refill) do
      local site = find_site(one[1])
      if site and call("HGET", P .. "owner", site) == args.worker then
        if not got(site, one[2]) then dry[#dry + 1] = one[1] end
      else
        dry[#dry + 1] = one[1]
      end
    end
    for _, site in ipairs(call("ZRANGEBYSCORE", P .. "later", "-inf", args.now * 1000)) do
      call("ZREM", P .. "later", site)
      call("ZADD", P .. "free", "LT", 0, site)
    end
    local fair = fair_share()
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
        if got(site, args.limit) then
          call("ZREM", P .. "later", site)
          call("HSET", P .. "owner", site, args.worker)
          call("SADD", owned_key(args.worker), site)
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
    taken = remembered(args, {sites, dry})
  end
  local told_sites = {}
  for _, one in ipairs(taken[1]) do told_sites[#told_sites + 1] = site_told(one[1], told[one[1]] or all_told(one[2]), now) end
  return {told_sites, taken[2], call("ZCARD", P .. "free") == 0 and fair_share() or -1}
end
