-- Looking.

local look = {}

function look.reply(id)
  local row = get(id)
  return cache.reply(id, cache.encoded(row), pack(sites.name(row[SITE]), groups.winner_of(id, row) or 0, inheritance.inherited_of(id) or false))
end

function look.replies(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if get(id) then found[#found + 1] = look.reply(id) end
  end
  return cache.replies(found)
end

function ops.get(args)
  local id = url_keys.id_of(args.url, args.key)
  return look.replies({id})
end

function ops.get_ids(args)
  prefetch(args.ids)
  return look.replies(args.ids)
end

-- Return the URLs after `after` for which `wanted` is true, and the id of the last one that was read; 0 if it was the last of all.
function look.walk(after, limit, most, wanted)
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

function ops.scan(args)
  local found, last = look.walk(args.after, args.limit, 20000, function() return true end)
  return {last, look.replies(found)}
end

function ops.urls(args)
  local found, last = look.walk(args.after, args.limit, 5000, function(row, id)
    return (args.state == nil or row[STATE] == args.state)
      and (not args.leased or row[LEASE_UNTIL])
      and (args.status == nil or row[STATUS] == args.status)
      and (args.host == nil or cache.host_of(sites.name(row[SITE])) == args.host)
      and (not args.held or (row[HELD] and (groups.winner_of(id, row) == id or groups.is_left_in_index(id))))
  end)
  return {last, look.replies(found)}
end

function ops.lost_links(args)
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
function ops.without_source(args)
  local ids = {}
  for _, key in ipairs(args.keys) do
    for _, id in ipairs(url_keys.ids_with(key)) do
      if call("HEXISTS", keys.by, id) == 0 then ids[#ids + 1] = id end
    end
  end
  prefetch(ids)
  return look.replies(ids)
end

-- 1 or 0: false would be no answer.
function ops.is_duplicate(args)
  local now = groups.standing(args.checksum)
  if (now.winner and now.winner ~= args.id) or #now.noted > 0 then return 1 end
  for _, id in ipairs(args.canonical and url_keys.rows_with(args.canonical) or {}) do
    if rows[id][CHECKSUM] and not rows[id][CANONICAL] then return 1 end
  end
  return 0
end

-- Return some of the held deletions, or of all URLs that are held because they are `folded`, and the cursor for the next call; "0": there
-- are no more.
function ops.held_some(args)
  local found, held = call("SSCAN", keys.held, args.cursor, "COUNT", args.limit), {}
  local ids = {}
  for n, member in ipairs(found[2]) do ids[n] = tonumber(member) end
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    local is_wanted
    if args.folded then
      is_wanted = row and row[HELD] == HELD_FOR.FOLDED
    else
      is_wanted = row and (groups.winner_of(id, row) == id or groups.is_left_in_index(id))
    end
    if is_wanted then held[#held + 1] = id end
  end
  return {found[1], held}
end

function ops.counts()
  local waiting, parked = 0, 0
  for _, sink in ipairs(SINKS) do
    waiting = waiting + call("ZCARD", outbox.key(sink, "delete")) + call("ZCARD", outbox.key(sink, "push"))
    parked = parked + call("ZCARD", outbox.key(sink, "parked"))
  end
  return {call("HGETALL", keys.counters), call("HGETALL", keys.status), waiting, parked, call("HLEN", keys.host), call("SCARD", keys.left), call("SCARD", keys.orphaned)}
end
