-- The archive: its files, the places of records, and documents that are pushed again.

function ops.add_archive_file(args)
  local known = call("HGETALL", keys.archive_file)
  for n = 1, #known, 2 do
    if known[n + 1] == args.name then return tonumber(known[n]) end
  end
  later("HSET", keys.archive_file, #known / 2 + 1, args.name)
  return #known / 2 + 1
end

-- `moves` are ids, each with the place up to now and the new one, false for none.
function ops.move_archived(args)
  local ids = {}
  for n, move in ipairs(args.moves) do ids[n] = move[1] end
  prefetch(ids)
  for _, move in ipairs(args.moves) do
    local row = get(move[1])
    if row and row[ARCHIVED] == move[2] then
      row[ARCHIVED] = move[3] or nil
      touch(move[1])
    end
  end
  flush()
end

-- `documents` are ids, each with its document and text, or false.
function ops.push_again(args)
  local ids, orders, unable = {}, {}, {}
  for n, one in ipairs(args.documents) do ids[n] = one[1] end
  prefetch(ids)
  for _, one in ipairs(args.documents) do
    local id, given = one[1], one[2]
    local row = get(id)
    if row and row[CHECKSUM] and groups.winner_of(id, row) == id then
      if given then
        orders[#orders + 1] = {id, row[URL], {row[URL], given[1], given[2], unpack(groups.noted_of(id, row))}}
      elseif groups.document_of(id) then
        orders[#orders + 1] = {id, row[URL]}
      else
        unable[#unable + 1] = id
      end
    end
  end
  cache.check()
  table.sort(orders, function(one, other) return one[1] < other[1] end)
  for _, order in ipairs(orders) do
    outbox.give(0, order[1], order[2], args.sink)
    if order[3] then outbox.keep_orders(order[2], order[3], args.sink) end
  end
  flush()
  return unable
end
