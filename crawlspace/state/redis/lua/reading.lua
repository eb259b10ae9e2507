-- Reading URLs, their depths and links; and the changes of these when depths are settled.

function reading.reply(id)
  local row = get(id)
  return cache.reply(id, cache.encoded(row), pack(sites.name(row[SITE]), groups.representative_of(id, row) or 0, inheritance.inherited_of(id) or false))
end

function reading.replies(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if get(id) then found[#found + 1] = reading.reply(id) end
  end
  return cache.replies(found)
end

function reads.get(args)
  local id = url_keys.id_of(args.url, args.key)
  return reading.replies({id})
end

function reads.get_ids(args)
  prefetch(args.ids)
  return reading.replies(args.ids)
end

-- Return the URLs after `after` for which `wanted` is true, and the id of the last one that was read; 0 if it was the last of all.
function reading.walk(after, limit, most, wanted)
  local last = tonumber(call("HGET", keys.counters, "urls") or 0)
  local found, id, looked = {}, after, 0
  while id < last and #found < limit and looked < most do
    local ids = {}
    for next_ = id + 1, math.min(id + 100, last) do ids[#ids + 1] = next_ end
    prefetch(ids)
    for _, one in ipairs(ids) do
      id, looked = one, looked + 1
      if rows[one] and wanted(rows[one], one) then
        found[#found + 1] = one
        if #found == limit then break end
      end
    end
  end
  return found, id < last and id or 0
end

function reads.scan(args)
  local found, last = reading.walk(args.after, args.limit, 20000, function() return true end)
  return {last, reading.replies(found)}
end

function reads.urls(args)
  local found, last = reading.walk(args.after, args.limit, 5000, function(row, id)
    return (args.state == nil or row[STATE] == args.state)
      and (not args.leased or row[LEASE_UNTIL])
      and (args.status == nil or row[STATUS] == args.status)
      and (args.host == nil or cache.host_of(sites.name(row[SITE])) == args.host)
  end)
  return {last, reading.replies(found)}
end

function reads.lost_links(args)
  local lost = {}
  for _, id in ipairs(args.ids) do
    for _, key in ipairs(url_keys.of_links(call("HGET", keys.links, id) or "")) do
      if #url_keys.ids_with(key) == 0 then
        lost[#lost + 1] = id
        break
      end
    end
  end
  return lost
end

-- Return the URLs with these keys that have no source page, see `inheritance.lua`.
function reads.without_source(args)
  local ids = {}
  for _, key in ipairs(args.keys) do
    for _, id in ipairs(url_keys.ids_with(key)) do
      if call("HEXISTS", keys.by, id) == 0 then ids[#ids + 1] = id end
    end
  end
  prefetch(ids)
  return reading.replies(ids)
end

function reads.leading_text(args)
  local within = near.within()
  return within > 0 and near.leading_text(args.simhash, within) or false
end

-- 1 or 0: false would be an empty reply.
function reads.is_duplicate(args)
  local now = groups.ranking(args.checksum)
  if (now.representative and now.representative ~= args.id) or #now.noted > 0 then return 1 end
  for _, id in ipairs(args.canonical and url_keys.rows_with(args.canonical) or {}) do
    if rows[id][CHECKSUM] and not rows[id][CANONICAL] then return 1 end
  end
  local within = args.simhash and near.within() or 0
  local leading
  if within > 0 then
    local left = near.group_alone(args.id)
    leading = near.joined_text(args.checksum, args.simhash, within, left ~= args.checksum and left or nil)
  end
  if leading and groups.ranking(leading).representative ~= args.id then return 1 end
  return 0
end

-- Whether a document in the index has a held deletion.
function reading.is_held(id, row)
  return row and row[HELD] and (groups.representative_of(id, row) == id or groups.is_left_in_index(id))
end

-- Return those of some ids in the set `held` that are documents in the index with a held deletion, for a reason and of a host, if these are
-- given; with `folded` all URLs that are held because they are folded.
function reads.held_urls(args)
  local found = {}
  prefetch(args.ids)
  for _, id in ipairs(args.ids) do
    local row = get(id)
    local is_wanted = row and (args.reason == nil or row[HELD] == args.reason)
      and (args.host == nil or cache.host_of(sites.name(row[SITE])) == args.host)
    if args.folded then is_wanted = row and row[HELD] == HELD_FOR.FOLDED else is_wanted = is_wanted and reading.is_held(id, row) end
    if is_wanted then found[#found + 1] = id end
  end
  return reading.replies(found)
end

-- Return the cursor for the next call ("0": there are no more) and some of the held deletions: a reason, a site and its ids each. The records
-- are read for that alone, without leases and what a change of them would need: half the time.
function reads.held_some(args)
  local found, ids, by_key, grouped = call("SSCAN", keys.held, args.cursor, "COUNT", args.limit), {}, {}, {}
  for n, member in ipairs(found[2]) do ids[n] = tonumber(member) end
  table.sort(ids)
  for first = 1, #ids, 500 do
    local some = {unpack(ids, first, math.min(first + 499, #ids))}
    local texts, alternates = records.texts_of(some), call("HMGET", keys.alternate, unpack(some))
    for n, id in ipairs(some) do
      local row = texts[n] and records.decoded(texts[n])
      groups.alternates[id] = alternates[n]
      if reading.is_held(id, row) then
        local key = row[HELD] .. " " .. row[SITE]
        if not by_key[key] then
          by_key[key] = {}
          grouped[#grouped + 1] = {row[HELD], sites.name(row[SITE]), by_key[key]}
        end
        table.insert(by_key[key], id)
      end
    end
  end
  return {found[1], grouped}
end

function reads.counts()
  local waiting, parked = 0, 0
  for _, sink in ipairs(SINKS) do
    waiting = waiting + call("ZCARD", outbox.key(sink, "delete")) + call("ZCARD", outbox.key(sink, "push"))
    parked = parked + call("ZCARD", outbox.key(sink, "parked"))
  end
  return {call("HGETALL", keys.counters), call("HGETALL", keys.status), waiting, parked, call("HLEN", keys.host), call("SCARD", keys.left), call("SCARD", keys.orphaned)}
end

-- Link depths: marks of those that may be wrong, and the links that they depend on. See `depths.py`.

function depths.of(id)
  local row = rows[id]
  return {
    id, row[KEY], row[STATE], row[STATUS] or false, row[DEPTH], row[DEPTH_FROM], row[ORPHANED] or false, row[CHECKSUM] ~= nil,
    row[HELD] == HELD_FOR.FOLDED,
  }
end

function reads.depths_of(args)
  local found = {}
  for first = 1, #args.keys, 8 do
    for _, id in ipairs(url_keys.rows_with(string.sub(args.keys, first, first + 7))) do found[#found + 1] = depths.of(id) end
  end
  return pack(found)
end

function reads.scan_depths(args)
  local found, last = reading.walk(args.after, args.limit, 20000, function() return true end)
  for n, id in ipairs(found) do found[n] = depths.of(id) end
  return {last, pack(found)}
end

function reads.orphans(args)
  local found = {}
  prefetch(args.ids)
  for _, id in ipairs(args.ids) do
    if get(id) then found[#found + 1] = depths.of(id) end
  end
  return pack(found)
end

-- Whether links lead to one of some keys.
function depths.lead_to(links, keys, only)
  if only and not string.find(links, only, 1, true) then return false end
  for first = 1, #links, 8 do
    if keys[string.sub(links, first, first + 7)] then return true end
  end
  return false
end

-- Return id, depth of the links, and links of pages whose links count, and the id of the last one read; 0: there are no more.
-- With `keys` only pages that lead to one of them; with `all` also those whose links don't count.
function reads.scan_links(args)
  local last, found = tonumber(call("HGET", keys.counters, "urls") or 0), {}
  local first = args.after + 1
  local to = math.min(args.after + args.limit, last)
  if first > to then return {0, found} end
  local ids = {}
  for id = first, to do ids[#ids + 1] = id end
  local with_links, texts, wanted = {}, {}, nil
  if args.keys then
    wanted = {}
    for _, key in ipairs(url_keys.of_links(args.keys)) do wanted[key] = true end
  end
  local only = wanted and #args.keys == 8 and args.keys or nil
  for start = 1, #ids, 500 do
    local stop = math.min(start + 499, #ids)
    for n, links in ipairs(call("HMGET", keys.links, unpack(ids, start, stop))) do
      local id = ids[start + n - 1]
      if links and (not wanted or depths.lead_to(links, wanted, only)) then with_links[#with_links + 1], texts[id] = id, links end
    end
  end
  prefetch(with_links)
  for _, id in ipairs(with_links) do
    local row = rows[id]
    if row and (args.all or record.leads_on(row)) then
      found[#found + 1] = {id, row[DEPTH] + (record.may_redirect(row[STATE], row[CHECKSUM]) and 0 or 1), texts[id]}
    end
  end
  return {to < last and to or 0, found}
end

function writes.relink(args)
  for _, page in ipairs(args.links) do
    local id, links = page[1], page[2]
    if links == "" then later("HDEL", keys.links, id) else later("HSET", keys.links, id, links) end
  end
  write_all()
end

-- Returns the ids of unchanged ones: leased, or with another depth meanwhile.
function writes.set_depths(args)
  local ids, left = {}, {}
  for n, new in ipairs(args.new) do ids[n] = new[1] end
  prefetch(ids)
  for _, new in ipairs(args.new) do
    local id, before, depth, depth_from, orphaned = unpack(new, 1, 5)
    local row = get(id)
    if row and not row[LEASE_UNTIL] and row[DEPTH] == before then
      row[DEPTH], row[DEPTH_FROM], row[ORPHANED] = depth, depth_from, orphaned
      touch(id)
    else
      left[#left + 1] = id
    end
  end
  flush()
  return left
end
