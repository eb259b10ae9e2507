-- Leases URLs, and gives sites to workers.

-- What is leased of one site, replied in one piece (see `encoding.py`): ids and records in the same order, and of the few that have any, the
-- ids with the winner of their group, and with their inherited metadata.
local taking = {}

function taking.new_batch() return {ids = {}, texts = {}, size = 0, winners = {}, inherited = {}} end

-- Returns it, and its ids alone, which have commas between. The records are long: they are put together once, and the batch is used up by that.
function taking.batch_reply(batch)
  local ids, texts, count = table.concat(batch.ids, ","), batch.texts, #batch.texts
  texts[0] = "\148" .. pack(ids) .. "\219" .. struct.pack(">I4", 5 + batch.size) .. "\221" .. struct.pack(">I4", count)
  texts[count + 1] = pack(batch.winners, batch.inherited)
  return table.concat(texts, "", 0), ids
end

local byte = string.byte

function taking.append(list, ...)
  for _, value in ipairs({...}) do list[#list + 1] = value end
end

-- Whether a known URL was fetched in the run that began at that time, and is only due again for its interval: see `once_a_run.py`.
function taking.is_for_next_run(row, began)
  return began and row[FETCHED_AT] and row[RETRIES] == 0 and not row[ASKED] and row[FETCHED_AT] >= began and row[NEXT_FETCH] > row[FETCHED_AT]
end

-- Lease the next URLs of one queue, until the batch has so many. They are in no other queue, and their records do not change: nothing
-- of what `flush` does is needed.
function taking.lease(batch, site, queue_index, latest, limit, lease)
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
      local kind, high, last, version = byte(text or "", 1, 4)  -- the client decodes the record, where it can
      local fine, row = kind == 220 and high == 0 and version == FORMAT, nil
      if fine and (latest or last >= CHECKSUM) then
        row = records.decoded(text)
        fine = row ~= nil
      end
      if fine and row and latest and taking.is_for_next_run(row, began) then
        call("SADD", keys.set_aside, id)
      elseif fine then
        count = count + 1
        ids[count], texts[count], size = id, text, size + #text
        leases[2 * (count - first) - 1], leases[2 * (count - first)] = id, lease
        if row then
          local winner = groups.winner_of(tonumber(id), row)
          if winner then taking.append(batch.winners, id, tostring(winner)) end
          if latest then gone["state " .. row[STATE]] = (gone["state " .. row[STATE]] or 0) + 1 end
        end
        if inherited[n] then taking.append(batch.inherited, id, inherited[n]) end
      elseif text then
        records.put_aside(tonumber(id), text)
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

taking.ALL_QUEUE_INDEXES = {}
for queue_index = 0, QUEUES - 1 do taking.ALL_QUEUE_INDEXES[queue_index + 1] = queue_index end

-- Return the queues of a site in which URLs are pending, and those in which URLs are or will be due.
function taking.queues_with_any(site, all_queue_indexes)
  local places, pending, due = {}, {}, {}
  for _, queue_indexes in ipairs(all_queue_indexes) do
    for _, queue_index in ipairs(queue_indexes) do places[#places + 1] = site .. ":" .. queue_index end
  end
  if #places == 0 then return pending, due end
  local is_pending, is_due = call("SMISMEMBER", keys.pending, unpack(places)), call("SMISMEMBER", keys.due, unpack(places))
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
function taking.lease_of(site, all_queue_indexes, limit, args, holder)
  local batch, pending, due = taking.new_batch(), taking.queues_with_any(site, all_queue_indexes)
  local lease = string.format("%.0f %d", args["until"], holder)
  for _, queue_indexes in ipairs(all_queue_indexes) do
    local most = #batch.ids + limit
    for _, queue_index in ipairs(queue_indexes) do
      if pending[queue_index] and #batch.ids < most then taking.lease(batch, site, queue_index, nil, most, lease) end
      if due[queue_index] and #batch.ids < most then taking.lease(batch, site, queue_index, args.now, most, lease) end
    end
  end
  return batch
end

-- Collect garbage while it is still in the processor's cache. Otherwise the collector sweeps all of it at every fifth call or
-- so, which then takes half as long again. So many steps are enough for what we make; there are no more, however much others have there.
function taking.swept(reply)
  collectgarbage("step", 100)
  return reply
end

-- Put aside records that the client could not decode.
function ops.put_aside(args)
  for _, id in ipairs(args.ids) do
    local text = call("HGET", records.url_key(id), id)
    if text then records.put_aside(id, text) end
  end
end

function ops.lease(args)
  local site = sites.find(args.site)
  local queue_indexes = args.queue_index and {args.queue_index} or taking.ALL_QUEUE_INDEXES
  local batch = site and taking.lease_of(site, {queue_indexes}, args.limit, args, 0) or taking.new_batch()
  return taking.swept((taking.batch_reply(batch)))
end

-- Of the sites that have work, rounded up.
function taking.fair_share()
  local sites, workers = call("ZCARD", keys.free), call("ZRANGE", keys.workers, 0, -1)
  for _, worker in ipairs(workers) do sites = sites + call("SCARD", alive.owned_key(worker)) end
  return math.ceil(sites / #workers)
end

-- Return what a worker needs to know of a site that it acquires; of one that it owns already it knows more than the server.
function taking.site_reply(site, urls, now, is_held)
  local name = sites.name(site)
  if is_held then return {name, urls} end
  local last_request = tonumber(call("HGET", keys.last_request, site) or nil)
  local robots = call("HMGET", keys.robots, "http " .. name, "https " .. name)
  return {name, urls, last_request and math.max(0, now - last_request) or -1, (waits.of(site)),
    call("HGET", keys.health, name) or "", robots[1] or "", robots[2] or "", call("HGET", keys.unreachable, name) or ""}
end

-- Lease more URLs of sites that a worker owns (`refill`: names, how many of each source, and the queues of those sources), and up to `new` further sites, `limit` URLs
-- of each source there. `queue_indexes` are the queues of each source that is not paused.
-- Returns what was taken, by site, the sites of `refill` that have nothing, and how many sites are this worker's share where others can get
-- none but from workers with more than theirs; -1 where some are free. A call that is repeated returns what it did.
function ops.take(args)
  local number, taken = alive.caller(args)
  if not number then return false end
  local now = now_ms()
  local fair
  local leased = {}  -- by site: what has been leased there
  if not taken then
    local dry, used = {}, {}
    local function got(site, limit, is_held, queue_indexes)
      local batch = taking.lease_of(site, queue_indexes, limit, args, number)
      if #batch.ids == 0 then return false end
      local urls, ids = taking.batch_reply(batch)
      used[#used + 1], leased[site] = {site, ids, is_held}, urls
      return true
    end
    for _, one in ipairs(args.refill) do
      local site = sites.find(one[1])
      if site and call("HGET", keys.owner, site) == args.worker and call("SISMEMBER", keys.given_up, site) == 0 then
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
      fair = taking.fair_share()
      wanted = math.min(args.new, fair - call("SCARD", alive.owned_key(args.worker)))
    end
    while wanted > 0 and tries < 2 * args.new do
      local site = call("ZRANGEBYSCORE", keys.free, "-inf", now, "LIMIT", 0, 1)[1]
      if not site then break end
      site = tonumber(site)
      tries = tries + 1
      call("ZREM", keys.free, site)
      local wait = waits.bounded(site, args.now)
      if wait > args.now then
        call("ZADD", keys.free, now + math.min(1000 * (wait - args.now), 5000), site)  -- by the clock that the others go by
      elseif call("SISMEMBER", keys.given_up, site) == 0 then
        if got(site, args.limit, false, args.queue_indexes) then
          call("ZREM", keys.later, site)
          call("HSET", keys.owner, site, args.worker)
          call("SADD", alive.owned_key(args.worker), site)
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
    taken = alive.remembered(args, {used, dry})
  end
  local site_replies = {}
  for _, one in ipairs(taken[1]) do site_replies[#site_replies + 1] = taking.site_reply(one[1], leased[one[1]] or {one[2]}, now, one[3]) end
  return taking.swept({site_replies, taken[2], call("ZCARD", keys.free) == 0 and (fair or taking.fair_share()) or -1})
end
