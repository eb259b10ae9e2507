-- The queues: for each site by source and shift, first pending URLs in order of discovery, then due ones, earliest first.

-- -1 if the worker has expired.
function queue.worker_number(worker) return tonumber(call("HGET", ownership.worker_key(worker), "number") or -1) end

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
      cache.touched[id] = cache.touched[id] or "position"
    end
  end
  flush()
end

function writes.release(args)
  local ids = args.ids
  if args.worker then  -- only those that it still has leased
    ids = queue.held_of(args.worker, args.ids)
  end
  queue.end_leases(ids)
end

function writes.reclaim(args)
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

function reads.due(args)
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
function reads.first_due(args)
  local reply = {}
  for _, name in ipairs(args.queues) do
    local site, queue_index = string.match(name, "(%d+):(%d+)")
    reply[#reply + 1] = sites.name(tonumber(site))
    reply[#reply + 1] = records.first_due(site, queue_index) or -1
  end
  return reply
end

-- An expired worker may not have noticed yet that it has lost a site.
function queue.holds(worker, site) return not worker or call("HGET", keys.owner, site) == worker end

function writes.wait_site(args)
  local site = sites.number(args.site)
  if not queue.holds(args.worker, site) and (args["until"] or 0) <= waits.of(site) then return end
  if args["until"] then
    call("HSET", keys.wait, site, string.format("%.0f %.0f", args["until"], args.wait_s or 0))
  else
    call("HDEL", keys.wait, site)
  end
end

-- Unless another worker owns the site, and has newer state.
function writes.set_unreachable(args)
  local owner = args.worker and call("HGET", keys.owner, sites.find(args.site) or 0)
  if owner and owner ~= args.worker then return end
  if args.row then
    call("HSET", keys.unreachable, args.site, args.row)
  else
    call("HDEL", keys.unreachable, args.site)
  end
end

-- Return for each site how many of its URLs are pending, and how many are due.
function reads.waiting_urls(args)
  local reply = {}
  for n, name in ipairs(args.sites) do
    local site, pending, due = sites.find(name), 0, 0
    for queue_index = 0, site and QUEUES - 1 or -1 do
      pending = pending + call("ZCARD", records.pending_key(site, queue_index))
      due = due + call("ZCOUNT", records.due_key(site, queue_index), "-inf", args.now)
    end
    reply[n] = {pending, due}
  end
  return reply
end

function reads.documents(args)
  local reply = {}
  for n, name in ipairs(args.sites) do reply[n] = tonumber(call("HGET", keys.documents, sites.find(name) or 0) or 0) end
  return reply
end

function writes.save_robots(args)
  if queue.holds(args.worker, sites.find(args.site) or 0) then call("HSET", keys.robots, args.key, args.entry) end
end

-- Leasing URLs, and assigning sites to workers.

-- The leased URLs of one site, in one reply (see `encoding.py`): ids and records in the same order, and for those that have any, the ids with
-- the representative of their group, and with their inherited metadata.
function queue.new_batch() return {ids = {}, texts = {}, size = 0, representatives = {}, inherited = {}} end

-- Returns the batch, and its ids separated by commas. The records are long: they are joined once, which consumes the batch.
function queue.batch_reply(batch)
  local ids, texts, count = table.concat(batch.ids, ","), batch.texts, #batch.texts
  texts[0] = "\148" .. pack(ids) .. "\219" .. struct.pack(">I4", 5 + batch.size) .. "\221" .. struct.pack(">I4", count)
  texts[count + 1] = pack(batch.representatives, batch.inherited)
  return table.concat(texts, "", 0), ids
end

function queue.append(list, ...)
  for _, value in ipairs({...}) do list[#list + 1] = value end
end

-- Whether a known URL was fetched in the run that began at that time, and is due again only by its interval: see `due_times.py`.
function queue.is_for_next_run(row, began)
  return began and row[FETCHED_AT] and row[RETRIES] == 0 and not row[REQUESTED_BY] and row[FETCHED_AT] >= began and row[NEXT_FETCH] > row[FETCHED_AT]
end

-- Lease the next URLs of one queue, until the batch has `limit`. They are in no other queue, and their records do not change: `flush` is not
-- needed.
function queue.lease(batch, site, queue_index, latest, limit, lease)
  local key = latest and records.due_key(site, queue_index) or records.pending_key(site, queue_index)
  local ids, texts, size, before, gone = batch.ids, batch.texts, batch.size, #batch.ids, {}
  local any_inherited = call("EXISTS", keys.inherited) == 1
  local began = latest and tonumber(call("GET", keys.run) or nil)
  while #ids < limit do
    local many = math.min(limit - #ids, 500)
    local members
    if latest then
      members = call("ZRANGEBYSCORE", key, "-inf", latest, "LIMIT", 0, many)
      for n, member in ipairs(members) do members[n] = string.format("%.0f", tonumber(member) - MEMBER) end
    else
      members = call("ZRANGE", key, 0, many - 1)
    end
    if #members == 0 then break end
    local inherited = any_inherited and call("HMGET", keys.inherited, unpack(members)) or {}
    local leases, count, first = {}, #ids, #ids
    for n, text in ipairs(records.texts_of(members)) do
      local id = members[n]
      local kind, high, last, version = string.byte(text or "", 1, 4)  -- the client decodes the record, if it can
      local fine, row = kind == 220 and high == 0 and version == FORMAT, nil
      if fine and (latest or last >= CHECKSUM) then
        row = records.decoded(text)
        fine = row ~= nil
      end
      if fine and row and latest and queue.is_for_next_run(row, began) then
        call("SADD", keys.deferred, id)
      elseif fine then
        count = count + 1
        ids[count], texts[count], size = id, text, size + #text
        leases[2 * (count - first) - 1], leases[2 * (count - first)] = id, lease
        if row then
          local representative = groups.representative_of(tonumber(id), row)
          if representative then queue.append(batch.representatives, id, tostring(representative)) end
          if latest then gone["state " .. row[STATE]] = (gone["state " .. row[STATE]] or 0) + 1 end
        end
        if inherited[n] then queue.append(batch.inherited, id, inherited[n]) end
      elseif text then
        records.quarantine(tonumber(id), text)
      end
    end
    if count > first then call("HSET", keys.lease, unpack(leases)) end
    call("ZREMRANGEBYRANK", key, 0, #members - 1)
    if not latest then gone["state " .. PENDING] = (gone["state " .. PENDING] or 0) + #members end
  end
  batch.size = size
  if #ids > before then call("HINCRBY", keys.counters, "state leased", #ids - before) end
  for name, count in pairs(gone) do call("HINCRBY", keys.counters, name, -count) end
  if call("EXISTS", key) == 0 then call("SREM", keys[latest and "due" or "pending"], site .. ":" .. queue_index) end
end

queue.ALL_QUEUE_INDEXES = {}
for queue_index = 0, QUEUES - 1 do queue.ALL_QUEUE_INDEXES[queue_index + 1] = queue_index end

-- Return the queues of a site in which URLs are pending, and those in which URLs are or will be due.
function queue.queues_with_any(site, all_queue_indexes)
  local names, pending, due = {}, {}, {}
  for _, queue_indexes in ipairs(all_queue_indexes) do
    for _, queue_index in ipairs(queue_indexes) do names[#names + 1] = site .. ":" .. queue_index end
  end
  if #names == 0 then return pending, due end
  local is_pending, is_due = call("SMISMEMBER", keys.pending, unpack(names)), call("SMISMEMBER", keys.due, unpack(names))
  local n = 0
  for _, queue_indexes in ipairs(all_queue_indexes) do
    for _, queue_index in ipairs(queue_indexes) do
      n = n + 1
      pending[queue_index], due[queue_index] = is_pending[n] == 1, is_due[n] == 1
    end
  end
  return pending, due
end

-- Lease up to `limit` URLs of each list of queues.
function queue.lease_of(site, all_queue_indexes, limit, args, holder)
  local batch, pending, due = queue.new_batch(), queue.queues_with_any(site, all_queue_indexes)
  local lease = string.format("%.0f %d", args["until"], holder)
  for _, queue_indexes in ipairs(all_queue_indexes) do
    local most = #batch.ids + limit
    for _, queue_index in ipairs(queue_indexes) do
      if pending[queue_index] and #batch.ids < most then queue.lease(batch, site, queue_index, nil, most, lease) end
      if due[queue_index] and #batch.ids < most then queue.lease(batch, site, queue_index, args.now, most, lease) end
    end
  end
  return batch
end

-- Collect garbage while it is still in the processor's cache. Otherwise the collector sweeps all of it at about every fifth call, which then
-- takes half as long again. This number of steps is enough for our garbage, and bounded whatever others have there.
function queue.swept(reply)
  collectgarbage("step", 100)
  return reply
end

-- Quarantine records that the client could not decode.
function writes.quarantine(args)
  for _, id in ipairs(args.ids) do
    local text = call("HGET", records.url_key(id), id)
    if text then records.quarantine(id, text) end
  end
end

function writes.lease(args)
  local site = sites.find(args.site)
  local queue_indexes = args.queue_index and {args.queue_index} or queue.ALL_QUEUE_INDEXES
  local is_open = site and not waits.is_paused(site)
  local batch = is_open and queue.lease_of(site, {queue_indexes}, args.limit, args, 0) or queue.new_batch()
  return queue.swept((queue.batch_reply(batch)))
end

-- The fair share of the sites that have work, rounded up.
function queue.fair_share()
  local sites, workers = call("ZCARD", keys.free), call("ZRANGE", keys.workers, 0, -1)
  for _, worker in ipairs(workers) do sites = sites + call("SCARD", ownership.owned_key(worker)) end
  return math.ceil(sites / #workers)
end

-- Return the state of a site that a worker acquires; for one that it owns already, it has newer state than the server.
function queue.site_reply(site, urls, now, is_held)
  local name = sites.name(site)
  if is_held then return {name, urls} end
  local last_request = tonumber(call("HGET", keys.last_request, site) or nil)
  local robots = call("HMGET", keys.robots, "http " .. name, "https " .. name)
  return {name, urls, last_request and math.max(0, now - last_request) or -1, (waits.of(site)),
    call("HGET", keys.health, name) or "", robots[1] or "", robots[2] or "", call("HGET", keys.unreachable, name) or ""}
end

-- Lease more URLs of sites that a worker owns (`refill`: names, how many of each source, and the queues of those sources), and up to `new` further sites, `limit` URLs
-- of each source there. `queue_indexes` are the queues of each source that is not paused.
-- Returns the leased URLs by site, the sites of `refill` that have none, and this worker's share of sites if others can only get sites from
-- workers that exceed theirs; -1 if some are free. A repeated call returns the same.
function writes.take(args)
  local number, taken = ownership.caller(args)
  if not number then return false end
  local now = ownership.now_ms()
  local fair
  local leased = {}  -- by site: what has been leased there
  if not taken then
    local dry, used = {}, {}
    local function got(site, limit, is_held, queue_indexes)
      local batch = queue.lease_of(site, queue_indexes, limit, args, number)
      if #batch.ids == 0 then return false end
      local urls, ids = queue.batch_reply(batch)
      used[#used + 1], leased[site] = {site, ids, is_held}, urls
      return true
    end
    for _, one in ipairs(args.refill) do
      local site = sites.find(one[1])
      if site and call("HGET", keys.owner, site) == args.worker and call("SISMEMBER", keys.given_up, site) == 0
        and not waits.is_paused(site) then
        if not got(site, one[2], true, one[3]) then dry[#dry + 1] = one[1] end
      else
        dry[#dry + 1] = one[1]
      end
    end
    for _, site in ipairs(call("ZRANGEBYSCORE", keys.later, "-inf", args.now * 1000, "LIMIT", 0, 2000)) do
      call("ZREM", keys.later, site)
      call("ZADD", keys.free, "LT", 0, site)
    end
    local wanted, tries = 0, 0
    if args.new > 0 then
      fair = queue.fair_share()
      wanted = math.min(args.new, fair - call("SCARD", ownership.owned_key(args.worker)))
    end
    while wanted > 0 and tries < 2 * args.new do
      local site = call("ZRANGEBYSCORE", keys.free, "-inf", now, "LIMIT", 0, 1)[1]
      if not site then break end
      site = tonumber(site)
      tries = tries + 1
      call("ZREM", keys.free, site)
      local wait = waits.bounded(site, args.now)
      if waits.is_paused(site) then
        call("SADD", keys.paused, site)
      elseif wait > args.now then
        call("ZADD", keys.free, now + math.min(1000 * (wait - args.now), 5000), site)  -- by the clock of the server
      elseif call("SISMEMBER", keys.given_up, site) == 0 then
        if got(site, args.limit, false, args.queue_indexes) then
          call("ZREM", keys.later, site)
          call("HSET", keys.owner, site, args.worker)
          call("SADD", ownership.owned_key(args.worker), site)
          wanted = wanted - 1
        else
          local at = nil
          for _, queue_indexes in ipairs(args.queue_indexes) do
            for _, queue_index in ipairs(queue_indexes) do
              local first = records.first_due(site, queue_index)
              if first and (not at or first < at) then at = first end
            end
          end
          if at then call("ZADD", keys.later, at * 1000, site) end
        end
      end
    end
    taken = ownership.remembered(args, {used, dry})
  end
  local site_replies = {}
  for _, one in ipairs(taken[1]) do site_replies[#site_replies + 1] = queue.site_reply(one[1], leased[one[1]] or {one[2]}, now, one[3]) end
  return queue.swept({site_replies, taken[2], call("ZCARD", keys.free) == 0 and (fair or queue.fair_share()) or -1})
end

-- Changes of many due times, in steps (`due_times.py` has the same for one row).

-- Change the next URLs for which `change` returns a new due time; its other changes of a record are written too.
-- Deferred URLs return to their queue, and are checked again when they are due.
function reading.change(args, change)
  local names, seen, times = {}, {}, {}
  local found, last = reading.walk(args.after, args.limit, 5000, function(row, id)
    times[id] = row[STATE] ~= PENDING and row[NEXT_FETCH] and change(row) or nil
    return times[id] ~= nil
  end)
  for _, id in ipairs(found) do
    local row = rows[id]
    row[NEXT_FETCH] = times[id]
    touch(id)
    local index = cache.queue_index_of(row)
    local name = row[SITE] .. ":" .. index
    if not seen[name] then
      seen[name] = {sites.name(row[SITE]), index, times[id]}
      names[#names + 1] = seen[name]
    end
    seen[name][3] = math.min(seen[name][3], times[id])
  end
  flush()
  return {#found, last, names}
end

function reading.was_fetched_by(row, time) return time == nil or not row[FETCHED_AT] or row[FETCHED_AT] <= time end

function writes.make_due_by(args)
  return reading.change(args, function(row)
    local is_late = row[NEXT_FETCH] > args.latest and (args.before == nil or row[NEXT_FETCH] < args.before)
    return is_late and reading.was_fetched_by(row, args.fetched_by) and args.latest
  end)
end

function writes.schedule(args)
  return reading.change(args, function(row)
    local is_ahead = row[FETCHED_AT] and row[FETCHED_AT] > args.latest + NAMES.times.CLOCKS_DIFFER_S
    if row[REQUESTED_BY] or row[RETRIES] > 0 or not (is_ahead or reading.was_fetched_by(row, args.fetched_by)) then return nil end
    row[REQUESTED_BY] = NAMES.times.SCHEDULE
    return args.latest
  end)
end

function writes.set_due_by_age(args)
  return reading.change(args, function(row)
    local at = row[NEXT_FETCH]
    if args.counts then return at >= NAMES.times.NOT_DUE_BY_AGE and math.min(at - NAMES.times.NOT_DUE_BY_AGE, args.latest) end
    local is_due_by_age = row[STATE] ~= FAILED and not row[REQUESTED_BY] and row[RETRIES] == 0 and row[FETCHED_AT] and row[FETCHED_AT] < at
    return is_due_by_age and at < NAMES.times.NOT_DUE_BY_AGE and at + NAMES.times.NOT_DUE_BY_AGE
  end)
end

function writes.make_retries_due_by(args)
  local ids, limit = {}, 1000
  for _, name in ipairs(call("SMEMBERS", keys.due)) do
    if #ids >= limit then break end
    local site, queue_index = string.match(name, "(%d+):(%d+)")
    if tonumber(queue_index) < SHIFTS * SOURCES.REFRESH then
      for _, member in ipairs(call("ZRANGEBYSCORE", records.due_key(site, queue_index), "(" .. args.latest, "+inf", "LIMIT", 0, limit - #ids)) do
        ids[#ids + 1] = tonumber(member) - MEMBER
      end
    end
  end
  prefetch(ids)
  for _, id in ipairs(ids) do
    if rows[id] then
      rows[id][NEXT_FETCH] = args.latest
      touch(id)
    end
  end
  flush()
  return #ids
end
