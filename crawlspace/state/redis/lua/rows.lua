-- The records that a call reads and changes. Nothing is written before `flush`, so that an error before changes nothing.

local rows  -- by id: the new record; false if there is none
forget_after_call(function()
  rows = {}
  cache.origin = {}   -- by id: its stored queue position and counts
  cache.touched = {}  -- by id: "row", or "position" where only that in the queue has changed
  cache.holders = {}  -- by id: the number of the worker that had it leased when this call began
  cache.opened, cache.closed = {}, {}  -- sorted sets that may have become non-empty or empty
  cache.is_checked = false
  url_keys.ids, url_keys.changed = {}, {}  -- by key: ids that were read, and whether they must be written
end)

function cache.encoded(row)
  local last = LAST
  while last > DISCOVERED_AT and (not row[last] or (ZERO[last] and row[last] == 0)) do last = last - 1 end
  return "\220" .. string.char(0, last) .. pack(unpack(row, 1, last))
end

-- The reply for a URL: its id, its record, and as `rest` its site, the representative of its group (0: none), and its inherited metadata.
function cache.reply(id, text, rest) return "\149" .. pack(id, text) .. rest end

-- Several of them as one text, so that the client library need not decode it.
function cache.replies(list)
  return "\221" .. struct.pack(">I4", #list) .. table.concat(list)
end

function cache.stored(row)
  local lease = row[LEASE_UNTIL]
  row[LEASE_UNTIL] = nil
  local text = cache.encoded(row)
  row[LEASE_UNTIL] = lease
  return text
end

function cache.queue_of(row)
  if row[STATE] == PENDING then return row[SOURCE], row[SHIFT] end
  if row[REQUESTED_BY] then return row[REQUESTED_BY] == NAMES.times.SCHEDULE and SOURCES.INDEX or SOURCES.USER, row[SHIFT] end
  return row[RETRIES] > 0 and row[SOURCE] or SOURCES.REFRESH, row[SHIFT]
end

function cache.queue_index_of(row)
  local source, shift = cache.queue_of(row)
  return source * SHIFTS + shift + math.floor(SHIFTS / 2)
end

-- The position of a URL in its queue: the sorted set, its member and its score there. A leased one has none.
function cache.position_of(id, row)
  if row[LEASE_UNTIL] then return nil end
  if row[STATE] == PENDING then return records.pending_key(row[SITE], cache.queue_index_of(row)), tostring(id), id end
  if row[NEXT_FETCH] then return records.due_key(row[SITE], cache.queue_index_of(row)), string.format("%.0f", MEMBER + id), row[NEXT_FETCH] end
  return nil
end

function cache.noted_origin(id, row)
  local key, member, score = cache.position_of(id, row)
  return {
    key = key, member = member, score = score, site = row[SITE], queue_index = cache.queue_index_of(row), pending = row[STATE] == PENDING,
    state = row[LEASE_UNTIL] and "leased" or row[STATE], status = row[STATUS], retrying = row[RETRIES] > 0, held = row[HELD] ~= nil,
    lease = row[LEASE_UNTIL], refused = row[REFUSED], orphaned = row[ORPHANED] ~= nil,
    has_document = row[CHECKSUM] ~= nil,
  }
end

-- Until when, and the number of the worker; 0 if a single process crawls.
function cache.lease_of(text)
  local until_, holder = string.match(text, "^(%d+) (%d+)$")
  return tonumber(until_ or 0), tonumber(holder or 0)
end

function cache.keep(id, text, lease)
  local row = text and records.decoded(text)
  if text and not row then records.quarantine(id, text) end
  rows[id] = row or false
  if row then
    if lease then row[LEASE_UNTIL], cache.holders[id] = cache.lease_of(lease) end
    cache.origin[id] = cache.noted_origin(id, row)
  end
end

function cache.add_to(lists, key, ...)
  local list = lists[key] or {}
  for _, value in ipairs({...}) do list[#list + 1] = value end
  lists[key] = list
end

local function prefetch(ids)
  local wanted, seen = {}, {}
  for _, id in ipairs(ids) do
    if rows[id] == nil and not seen[id] then
      seen[id] = true
      wanted[#wanted + 1] = id
    end
  end
  local by_part = {}
  for _, id in ipairs(wanted) do cache.add_to(by_part, records.part_of(id), id) end
  for part, some in pairs(by_part) do
    for first = 1, #some, 500 do
      local last = math.min(first + 499, #some)
      local found = call("HMGET", records.part_key(part), unpack(some, first, last))
      local leases = call("HMGET", keys.lease, unpack(some, first, last))
      for n = first, last do cache.keep(some[n], found[n - first + 1], leases[n - first + 1]) end
    end
  end
end

local function get(id)
  if rows[id] == nil then cache.keep(id, call("HGET", records.url_key(id), id), call("HGET", keys.lease, id)) end
  return rows[id] or nil
end

local function touch(id) cache.touched[id] = "row" end

-- Ids by key. Two URLs may share one: then the ids are separated by commas.
function url_keys.bucket(key)
  return string.format("%sk:%02x%02x", P, string.byte(key, 1), string.byte(key, 2))
end

function url_keys.split_ids(text)
  local ids = {}
  for id in string.gmatch(text, "%d+") do ids[#ids + 1] = tonumber(id) end
  return ids
end

function url_keys.ids_with(key)
  local ids = url_keys.ids[key]
  if not ids then
    local text = call("HGET", url_keys.bucket(key), key)
    ids = text and url_keys.split_ids(text) or {}
    url_keys.ids[key] = ids
  end
  return ids
end

function url_keys.add(key, id)
  local ids = url_keys.ids_with(key)
  ids[#ids + 1] = id
  url_keys.changed[key] = true
end

function url_keys.drop(key, id)
  local left = {}
  for _, other in ipairs(url_keys.ids_with(key)) do
    if other ~= id then left[#left + 1] = other end
  end
  url_keys.ids[key] = left
  url_keys.changed[key] = true
end

-- The keys in the links of a page.
function url_keys.of_links(links)
  local found = {}
  for first = 1, #links, 8 do found[#found + 1] = string.sub(links, first, first + 7) end
  return found
end

function url_keys.rows_with(key)
  local ids = url_keys.ids_with(key)
  prefetch(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if rows[id] then found[#found + 1] = id end
  end
  return found
end

function url_keys.id_of(url, key)
  for _, id in ipairs(url_keys.rows_with(key)) do
    if rows[id][URL] == url then return id end
  end
  return nil
end

function cache.host_of(name) return string.match(name, "^(.*):[^:]*$") or name end

-- The increments of each counter by the changed records: in `counters`, and in hashes by status, host, and site with queue.
function cache.tallies()
  local of = {counters = {}, status = {}, host = {}, host_uncounted = {}, retries = {}}  -- of the uncounted, those that do not count towards its limit
  local function count(hash, what, by) of[hash][what] = (of[hash][what] or 0) + by end
  for id in pairs(cache.touched) do
    local was = cache.origin[id]
    local is = rows[id] and cache.noted_origin(id, rows[id]) or nil
    for sign, one in pairs({[-1] = was, [1] = is}) do
      if one then
        count("counters", "state " .. one.state, sign)
        if one.status then count("status", one.status, sign) end
        if one.status and UNCOUNTED[one.status] then count("host_uncounted", cache.host_of(sites.name(one.site)), sign) end
        for letter, number in string.gmatch(one.refused or "", "(%a)(%d+)") do count("counters", "refused " .. letter, sign * number) end
        if one.has_document then count("counters", "with document", sign) end
        if one.retrying then
          count("counters", "retrying", sign)
          count("retries", one.site .. ":" .. one.queue_index, sign)
        end
      end
    end
    if not was and is then count("host", cache.host_of(sites.name(is.site)), 1) end
    if was and not is then count("host", cache.host_of(sites.name(was.site)), -1) end
  end
  return of
end

function cache.check_counters(hash, names)
  for first = 1, #names, 500 do
    local last = math.min(first + 499, #names)
    for n, count in ipairs(call("HMGET", keys[hash], unpack(names, first, last))) do
      if count and not string.match(count, "^-?%d+$") then error("the counter " .. names[first + n - 1] .. " is not an integer") end
    end
  end
end

-- Raise an error if a counter of the changed records is damaged; nothing has been written before.
function cache.check()
  if cache.is_checked then return end
  cache.is_checked = true
  local of_sites = {}
  for id in pairs(cache.touched) do
    local row = rows[id]
    local site = row and row[SITE] or cache.origin[id] and cache.origin[id].site
    if site then
      sites.name(site)
      of_sites[site] = true
    end
  end
  cache.check_counters("counters", NAMES.counters)
  for hash, counts in pairs(cache.tallies()) do
    if hash ~= "counters" then cache.check_counters(hash, cache.keys(counts)) end
  end
  cache.check_counters("documents", cache.keys(of_sites))
end

function cache.keys(map)
  local found = {}
  for key in pairs(map) do found[#found + 1] = key end
  return found
end

local function flush()
  cache.check()
  cache.is_checked = false
  local tallies = cache.tallies()
  local added, removed, written, dropped = {}, {}, {}, {}
  for id, what in pairs(cache.touched) do
    local row, was = rows[id], cache.origin[id]
    local is = row and cache.noted_origin(id, row) or nil
    if was and (not is or was.key ~= is.key or was.member ~= is.member) and was.key then
      removed[was.key] = removed[was.key] or {}
      table.insert(removed[was.key], was.member)
      cache.closed[was.key] = was
    end
    if is and is.key and (not was or was.key ~= is.key or was.score ~= is.score) then
      added[is.key] = added[is.key] or {}
      table.insert(added[is.key], is.score)
      table.insert(added[is.key], is.member)
      cache.opened[is.key] = is
    end
    if (was and was.lease) ~= (is and is.lease) then
      call("HDEL", keys.lease, id)  -- only `queue.lease` leases
    end
    if (is and is.orphaned or false) ~= (was and was.orphaned or false) then
      call(is and is.orphaned and "SADD" or "SREM", keys.orphaned, id)
    end
    if is and is.held ~= (was and was.held or false) then
      call(is.held and "SADD" or "SREM", keys.held, id)
    elseif was and was.held and not is then
      call("SREM", keys.held, id)
    end
    if row then
      if what == "row" then
        cache.add_to(written, records.part_of(id), id, cache.stored(row))
      end
      cache.origin[id] = is
    else
      cache.add_to(dropped, records.part_of(id), id)
      cache.origin[id] = nil
    end
  end
  cache.touched = {}
  for part, values in pairs(written) do
    for first = 1, #values, 500 do call("HSET", records.part_key(part), unpack(values, first, math.min(first + 499, #values))) end
  end
  for part, ids in pairs(dropped) do
    for first = 1, #ids, 500 do call("HDEL", records.part_key(part), unpack(ids, first, math.min(first + 499, #ids))) end
  end
  for key, members in pairs(removed) do
    for first = 1, #members, 500 do call("ZREM", key, unpack(members, first, math.min(first + 499, #members))) end
  end
  for key, pairs_ in pairs(added) do
    for first = 1, #pairs_, 500 do call("ZADD", key, unpack(pairs_, first, math.min(first + 499, #pairs_))) end
  end
  for key, one in pairs(cache.opened) do
    call("SADD", keys[one.pending and "pending" or "due"], one.site .. ":" .. one.queue_index)
    cache.closed[key] = nil
    if call("HEXISTS", keys.owner, one.site) == 0 then  -- see `workers.lua`
      if one.pending then
        call("ZADD", keys.free, "LT", 0, one.site)
      else
        call("ZADD", keys.later, "LT", one.score * 1000, one.site)
      end
    end
  end
  for key, one in pairs(cache.closed) do
    if call("EXISTS", key) == 0 then call("SREM", keys[one.pending and "pending" or "due"], one.site .. ":" .. one.queue_index) end
  end
  cache.opened, cache.closed = {}, {}
  for key in pairs(url_keys.changed) do
    local ids = url_keys.ids[key]
    if #ids == 0 then
      call("HDEL", url_keys.bucket(key), key)
    else
      call("HSET", url_keys.bucket(key), key, table.concat(ids, ","))
    end
  end
  url_keys.changed = {}
  for what, by in pairs(tallies.counters) do if by ~= 0 then call("HINCRBY", keys.counters, what, by) end end
  for _, hash in ipairs({"status", "retries", "host", "host_uncounted"}) do
    for what, by in pairs(tallies[hash]) do
      if by ~= 0 and call("HINCRBY", keys[hash], what, by) == 0 then call("HDEL", keys[hash], what) end
    end
  end
end
