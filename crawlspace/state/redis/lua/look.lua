-- Looking.

local function told(id)
  local row = get(id)
  return as_told(id, encoded(row), pack(site_name(row[SITE]), winner_of(id, row) or 0, inherited_of(id) or false))
end

local function all_told(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if get(id) then found[#found + 1] = told(id) end
  end
  return all_as_told(found)
end

function ops.get(args)
  local id = id_of(args.url, args.key)
  return all_told({id})
end

function ops.get_ids(args)
  prefetch(args.ids)
  return all_told(args.ids)
end

-- The URLs behind `after` for which `wanted` holds, and the last one that was looked at; 0 where that was the last of all.
local function walk(after, limit, most, wanted)
  local last = tonumber(call("HGET", P .. "n", "urls") or 0)
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
  local found, last = walk(args.after, args.limit, 20000, function() return true end)
  return {last, all_told(found)}
end

-- What was set aside stands in its queue again, and is looked at again when its time has come.
function ops.hasten(args)
  local places, seen = {}, {}
  local found, last = walk(args.after, args.limit, 5000, function(row)
    return row[STATE] ~= PENDING and row[NEXT] and row[NEXT] > args.latest
      and (args.fetched_by == nil or not row[FETCHED] or row[FETCHED] <= args.fetched_by)
  end)
  for _, id in ipairs(found) do
    local row = rows[id]
    row[NEXT] = args.latest
    touch(id)
    local place = row[SITE] .. ":" .. queue_index_of(row)
    if not seen[place] then
      seen[place] = true
      places[#places + 1] = {site_name(row[SITE]), queue_index_of(row)}
    end
  end
  flush()
  return {#found, last, places}
end

function ops.urls(args)
  local found, last = walk(args.after, args.limit, 5000, function(row, id)
    return (args.state == nil or row[STATE] == args.state)
      and (not args.leased or row[LEASE])
      and (args.status == nil or row[STATUS] == args.status)
      and (args.host == nil or host_of(site_name(row[SITE])) == args.host)
      and (not args.held or (row[HELD] and (winner_of(id, row) == id or is_left_in_index(id))))
  end)
  return {last, all_told(found)}
end

function ops.lost_links(args)
  local lost = {}
  for _, id in ipairs(args.ids) do
    for _, key in ipairs(keys_of(call("HGET", P .. "links", id) or "")) do
      if #ids_with(key) == 0 then
        lost[#lost + 1] = id
        break
      end
    end
  end
  return lost
end

-- 1 or 0: false would be no answer.
function ops.is_duplicate(args)
  local now = standing(args.checksum)
  if (now.winner and now.winner ~= args.id) or #now.noted > 0 then return 1 end
  for _, id in ipairs(args.canonical and rows_with(args.canonical) or {}) do
    if rows[id][CHECKSUM] and not rows[id][CANON] then return 1 end
  end
  return 0
end

-- Some of the held deletions, and where to go on; "0": those were all.
function ops.held_some(args)
  local found, held = call("SSCAN", P .. "held", args.cursor, "COUNT", args.limit), {}
  local ids = {}
  for n, member in ipairs(found[2]) do ids[n] = tonumber(member) end
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and (winner_of(id, row) == id or is_left_in_index(id)) then held[#held + 1] = id end
  end
  return {found[1], held}
end

function ops.counts()
  local waiting, parked = 0, 0
  for _, sink in ipairs(SINKS) do
    waiting = waiting + call("ZCARD", out(sink, "delete")) + call("ZCARD", out(sink, "push"))
    parked = parked + call("ZCARD", out(sink, "parked"))
  end
  return {call("HGETALL", P .. "n"), call("HGETALL", P .. "status"), waiting, parked, call("HLEN", P .. "host"), call("SCARD", P .. "left")}
end
