-- Link depths: marks of those that may be wrong, and the links that they depend on. See `depths.py`.

local depths = {}

function depths.of(id)
  local row = rows[id]
  return {
    id, row[KEY], row[STATE], row[STATUS] or false, row[DEPTH], row[DEPTH_FROM], row[ORPHANED] or false, row[CHECKSUM] ~= nil,
    row[HELD] == HELD_FOR.FOLDED,
  }
end

function ops.depths_of(args)
  local found = {}
  for first = 1, #args.keys, 8 do
    for _, id in ipairs(url_keys.rows_with(string.sub(args.keys, first, first + 7))) do found[#found + 1] = depths.of(id) end
  end
  return pack(found)
end

function ops.scan_depths(args)
  local found, last = look.walk(args.after, args.limit, 20000, function() return true end)
  for n, id in ipairs(found) do found[n] = depths.of(id) end
  return {last, pack(found)}
end

function ops.orphans(args)
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

-- Return id, depth of what it leads to, and links of pages whose links count, and the id of the last one looked at; 0: there are no more.
-- With `keys` only pages that lead to one of them; with `all` also those whose links don't count.
function ops.scan_links(args)
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

function ops.relink(args)
  for _, page in ipairs(args.links) do
    local id, links = page[1], page[2]
    if links == "" then later("HDEL", keys.links, id) else later("HSET", keys.links, id, links) end
  end
  write_all()
end

-- Returns the ids of those that are left as they are: leased, or of another depth meanwhile.
function ops.set_depths(args)
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
