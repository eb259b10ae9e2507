-- The records that a call reads and changes. Nothing is written before `flush`, so that whatever goes wrong before changes nothing.

local rows = {}     -- by id: the record as it is to be; false where there is none
local origin = {}   -- by id: where it stands and what it counts as in the database
local touched = {}  -- by id: "row", or "place" where only that has changed
local holders = {}  -- by id: the number of the worker that held it when this call began

local function encoded(row)
  local last = LAST
  while last > FOUND and (not row[last] or (ZERO[last] and row[last] == 0)) do last = last - 1 end
  return "\220" .. string.char(0, last) .. pack(unpack(row, 1, last))
end

-- A URL as it is told: its id, its record, and as `rest` its site, who stands for its group (0: nobody), and what has been handed to it.
local function as_told(id, text, rest) return "\149" .. pack(id, text) .. rest end

-- Several of them, as one text: what is told is not taken apart on the way.
local function all_as_told(list)
  return "\221" .. struct.pack(">I4", #list) .. table.concat(list)
end

local function stored(row)
  local lease = row[LEASE]
  row[LEASE] = nil
  local text = encoded(row)
  row[LEASE] = lease
  return text
end

local function queue_of(row)
  if row[STATE] == PENDING then return row[SOURCE], row[SHIFT] end
  if row[ASKED] then return USER, row[SHIFT] end
  return row[RETRIES] > 0 and row[SOURCE] or REFRESH, row[SHIFT]
end

local function queue_index_of(row)
  local source, shift = queue_of(row)
  return source * 5 + shift + 2
end

-- Where a URL stands: the sorted set, its member and its score there. One that is leased stands nowhere.
local function place_of(id, row)
  if row[LEASE] then return nil end
  if row[STATE] == PENDING then return pending_key(row[SITE], queue_index_of(row)), tostring(id), id end
  if row[NEXT] then return due_key(row[SITE], queue_index_of(row)), string.format("%.0f", MEMBER + id), row[NEXT] end
  return nil
end

local function noted_origin(id, row)
  local key, member, score = place_of(id, row)
  return {
    key = key, member = member, score = score, site = row[SITE], queue_index = queue_index_of(row), pending = row[STATE] == PENDING,
    state = row[LEASE] and "leased" or row[STATE], status = row[STATUS], retrying = row[RETRIES] > 0, held = row[HELD] ~= nil,
    lease = row[LEASE],
  }
end

-- Until when, and the number of the worker; 0 where one process alone crawls.
local function lease_of(text)
  local until_, holder = string.match(text, "^(%d+) (%d+)$")
  return tonumber(until_ or 0), tonumber(holder or 0)
end

local function keep(id, text, lease)
  local row = text and decoded(text)
  if text and not row then put_aside(id, text) end
  rows[id] = row or false
  if row then
    if lease then row[LEASE], holders[id] = lease_of(lease) end
    origin[id] = noted_origin(id, row)
  end
end

local function add_to(lists, key, ...)
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
  for _, id in ipairs(wanted) do add_to(by_part, part_of(id), id) end
  for part, some in pairs(by_part) do
    for first = 1, #some, 500 do
      local last = math.min(first + 499, #some)
      local found = call("HMGET", part_key(part), unpack(some, first, last))
      local leases = call("HMGET", P .. "lease", unpack(some, first, last))
      for n = first, last do keep(some[n], found[n - first + 1], leases[n - first + 1]) end
    end
  end
end

local function get(id)
  if rows[id] == nil then keep(id, call("HGET", url_key(id), id), call("HGET", P .. "lease", id)) end
  return rows[id] or nil
end

local function touch(id) touched[id] = "row" end

-- Ids by key. Two URLs may share one: then the ids stand there with commas between.
local function key_bucket(key)
  return string.format("%sk:%02x%02x", P, string.byte(key, 1), string.byte(key, 2))
end

local function split_ids(text)
  local ids = {}
  for id in string.gmatch(text, "%d+") do ids[#ids + 1] = tonumber(id) end
  return ids
end

local new_ids = {}  -- by key: what this call has changed
local function ids_with(key)
  local ids = new_ids[key]
  if not ids then
    local text = call("HGET", key_bucket(key), key)
    ids = text and split_ids(text) or {}
    new_ids[key] = ids
  end
  return ids
end

local changed_keys = {}
local function add_key(key, id)
  local ids = ids_with(key)
  ids[#ids + 1] = id
  changed_keys[key] = true
end

local function drop_key(key, id)
  local left = {}
  for _, other in ipairs(ids_with(key)) do
    if other ~= id then left[#left + 1] = other end
  end
  new_ids[key] = left
  changed_keys[key] = true
end

local function rows_with(key)
  local ids = ids_with(key)
  prefetch(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if rows[id] then found[#found + 1] = id end
  end
  return found
end

local function id_of(url, key)
  for _, id in ipairs(rows_with(key)) do
    if rows[id][URL] == url then return id end
  end
  return nil
end

local function host_of(name) return string.match(name, "^(.*):[^:]*$") or name end

-- A sorted set that was empty is noted in the list of its kind, one that becomes empty is struck out there.
local opened, closed = {}, {}

local function flush()
  local counts, statuses, hosts, retries, uncounted = {}, {}, {}, {}, {}
  local function count(where, what, by) where[what] = (where[what] or 0) + by end
  local added, removed, written, dropped = {}, {}, {}, {}
  for id, what in pairs(touched) do
    local row, was = rows[id], origin[id]
    local is = row and noted_origin(id, row) or nil
    if was and (not is or was.key ~= is.key or was.member ~= is.member) and was.key then
      removed[was.key] = removed[was.key] or {}
      table.insert(removed[was.key], was.member)
      closed[was.key] = was
    end
    if is and is.key and (not was or was.key ~= is.key or was.score ~= is.score) then
      added[is.key] = added[is.key] or {}
      table.insert(added[is.key], is.score)
      table.insert(added[is.key], is.member)
      opened[is.key] = is
    end
    if (was and was.lease) ~= (is and is.lease) then
      call("HDEL", P .. "lease", id)  -- only `take.lua` leases
    end
    for sign, one in pairs({[-1] = was, [1] = is}) do
      if one then
        count(counts, "state " .. one.state, sign)
        if one.status then count(statuses, one.status, sign) end
        if one.status and UNCOUNTED[one.status] then count(uncounted, host_of(site_name(one.site)), sign) end
        if one.retrying then
          count(counts, "retrying", sign)
          count(retries, one.site .. ":" .. one.queue_index, sign)
        end
      end
    end
    if not was and row then count(hosts, host_of(site_name(row[SITE])), 1) end
    if was and not row then count(hosts, host_of(site_name(was.site)), -1) end
    if is and is.held ~= (was and was.held or false) then
      call(is.held and "SADD" or "SREM", P .. "held", id)
    elseif was and was.held and not is then
      call("SREM", P .. "held", id)
    end
    if row then
      if what == "row" then
        add_to(written, part_of(id), id, stored(row))
      end
      origin[id] = is
    else
      add_to(dropped, part_of(id), id)
      origin[id] = nil
    end
  end
  touched = {}
  for part, values in pairs(written) do
    for first = 1, #values, 500 do call("HSET", part_key(part), unpack(values, first, math.min(first + 499, #values))) end
  end
  for part, ids in pairs(dropped) do
    for first = 1, #ids, 500 do call("HDEL", part_key(part), unpack(ids, first, math.min(first + 499, #ids))) end
  end
  for key, members in pairs(removed) do
    for first = 1, #members, 500 do call("ZREM", key, unpack(members, first, math.min(first + 499, #members))) end
  end
  for key, pairs_ in pairs(added) do
    for first = 1, #pairs_, 500 do call("ZADD", key, unpack(pairs_, first, math.min(first + 499, #pairs_))) end
  end
  for key, one in pairs(opened) do
    call("SADD", P .. (one.pending and "pending" or "due"), one.site .. ":" .. one.queue_index)
    closed[key] = nil
    if call("HEXISTS", P .. "owner", one.site) == 0 then  -- see `workers.lua`
      if one.pending then
        call("ZADD", P .. "free", "LT", 0, one.site)
      else
        call("ZADD", P .. "later", "LT", one.score * 1000, one.site)
      end
    end
  end
  for key, one in pairs(closed) do
    if call("EXISTS", key) == 0 then call("SREM", P .. (one.pending and "pending" or "due"), one.site .. ":" .. one.queue_index) end
  end
  opened, closed = {}, {}
  for key in pairs(changed_keys) do
    local ids = new_ids[key]
    if #ids == 0 then
      call("HDEL", key_bucket(key), key)
    else
      call("HSET", key_bucket(key), key, table.concat(ids, ","))
    end
  end
  changed_keys = {}
  for what, by in pairs(counts) do if by ~= 0 then call("HINCRBY", P .. "n", what, by) end end
  for status, by in pairs(statuses) do
    if by ~= 0 and call("HINCRBY", P .. "status", status, by) == 0 then call("HDEL", P .. "status", status) end
  end
  for place, by in pairs(retries) do
    if by ~= 0 and call("HINCRBY", P .. "retries", place, by) == 0 then call("HDEL", P .. "retries", place) end
  end
  for host, by in pairs(hosts) do
    if by ~= 0 and call("HINCRBY", P .. "host", host, by) == 0 then call("HDEL", P .. "host", host) end
  end
  for host, by in pairs(uncounted) do  -- of those, the ones that do not count towards its limit
    if by ~= 0 and call("HINCRBY", P .. "host_uncounted", host, by) == 0 then call("HDEL", P .. "host_uncounted", host) end
  end
end
