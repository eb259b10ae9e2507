-- What an index asks of the outbox.

function ops.orders(args)
  local sink, reply = args.sink, {}
  for op, list in pairs({[1] = "delete", [0] = "push"}) do reply[op] = call("ZRANGE", outbox.key(sink, list), 0, args.limit - 1) end
  local found, left = {}, args.bytes
  for _, op in ipairs({1, 0}) do
    for _, number in ipairs(reply[op]) do
      if #found == args.limit or left <= 0 then return found end
      local id, url = string.match(call("HGET", outbox.key(sink, "order"), number), "^%d:(%d+):(.*)$")
      local document, archived = {}, false
      if op == 0 then
        local row = get(tonumber(id))
        archived = row and row[CHECKSUM] and row[ARCHIVED] or false
        local kept = call("HGET", outbox.key(sink, "kept"), number)
        document = kept and unpack_one(kept) or groups.document_of(tonumber(id)) or {}
        for _, part in ipairs(document) do left = left - #part end
      end
      found[#found + 1] = {tonumber(number), op, url, document, archived}
    end
  end
  return found
end

function ops.acknowledge(args)
  local ids, done = {}, {}
  for _, order in ipairs(args.orders) do
    local number, url = order[1], order[2]
    if tonumber(call("HGET", outbox.key(args.sink, "url"), url) or -1) == number then
      local text = call("HGET", outbox.key(args.sink, "order"), number) or ""
      ids[#ids + 1] = tonumber(string.match(text, "^%d:(%d+):") or error("the order " .. number .. " is damaged"))
      done[#done + 1] = order
    end
  end
  prefetch(ids)
  for _, id in ipairs(ids) do
    if get(id) and rows[id][CHECKSUM] then groups.entry_of(rows[id][CHECKSUM]) end
  end
  for _, order in ipairs(done) do outbox.strike_out(args.sink, order[2], order[1]) end
  groups.drop_texts(ids)
end

-- Remove the pushes of a sink, parked ones too; with `deletes` all of its orders.
function ops.withdraw(args)
  local ids, struck = {}, {}
  for _, list in ipairs({"push", "parked", args.deletes and "delete" or nil}) do
    for _, number in ipairs(call("ZRANGE", outbox.key(args.sink, list), 0, -1)) do
      local op, id, url = string.match(call("HGET", outbox.key(args.sink, "order"), number) or "", "^(%d):(%d+):(.*)$")
      if not op then error("the order " .. number .. " is damaged") end
      if args.deletes or op == "0" then
        ids[#ids + 1] = tonumber(id)
        struck[#struck + 1] = {url, number}
      end
    end
  end
  prefetch(ids)
  for _, id in ipairs(ids) do
    if get(id) and rows[id][CHECKSUM] then groups.entry_of(rows[id][CHECKSUM]) end
  end
  for _, order in ipairs(struck) do outbox.strike_out(args.sink, order[1], order[2]) end
  groups.drop_texts(ids)
end

-- For each URL: 1 where its order is parked, 0 where it waits, -1 where there is none.
function ops.ordered(args)
  local found = {}
  for n, url in ipairs(args.urls) do
    local number = call("HGET", outbox.key(args.sink, "url"), url)
    found[n] = not number and -1 or call("ZSCORE", outbox.key(args.sink, "parked"), number) and 1 or 0
  end
  return found
end

-- Whether the index has the document of a URL, or was left it for another collection.
function groups.is_in_index(id)
  local row = id and get(id)
  return row and (row[CHECKSUM] and groups.winner_of(id, row) == id or groups.is_left_in_index(id))
end

-- `urls` are URLs, each with its key; returns the places of those that are in the index.
function ops.in_index(args)
  local found = {}
  for place, one in ipairs(args.urls) do
    if groups.is_in_index(url_keys.id_of(one[1], one[2])) then found[#found + 1] = place end
  end
  return found
end

-- As for `in_index`.
function ops.delete_again(args)
  local unwanted = {}
  for _, one in ipairs(args.urls) do
    local id = url_keys.id_of(one[1], one[2])
    if not groups.is_in_index(id) then unwanted[#unwanted + 1] = {id or 0, one[1]} end
  end
  for _, one in ipairs(unwanted) do outbox.give(1, one[1], one[2], args.sink) end
end

function ops.park(args)
  if tonumber(call("HGET", outbox.key(args.sink, "url"), args.url) or -1) ~= args.number then return end
  call("ZREM", outbox.key(args.sink, "delete"), args.number)
  call("ZREM", outbox.key(args.sink, "push"), args.number)
  call("ZADD", outbox.key(args.sink, "parked"), args.number, args.number)
  call("HSET", outbox.key(args.sink, "reason"), args.number, args.reason)
end

-- Have parked orders wait again, each at its number; return how many.
function ops.unpark(args)
  local parked = call("ZRANGE", outbox.key(args.sink, "parked"), 0, -1)
  local lists = {}
  for _, number in ipairs(parked) do
    local op = string.match(call("HGET", outbox.key(args.sink, "order"), number) or "", "^(%d):%d+:")
    lists[#lists + 1] = op and (op == "1" and "delete" or "push") or error("the order " .. number .. " is damaged")
  end
  for i, number in ipairs(parked) do
    call("ZADD", outbox.key(args.sink, lists[i]), number, number)
    call("HDEL", outbox.key(args.sink, "reason"), number)
  end
  call("DEL", outbox.key(args.sink, "parked"))
  return #parked
end

function ops.parked(args)
  local found = {}
  for _, number in ipairs(call("ZRANGE", outbox.key(args.sink, "parked"), 0, -1)) do
    local op, url = string.match(call("HGET", outbox.key(args.sink, "order"), number), "^(%d):%d+:(.*)$")
    found[#found + 1] = {tonumber(op), url, call("HGET", outbox.key(args.sink, "reason"), number)}
  end
  return found
end
