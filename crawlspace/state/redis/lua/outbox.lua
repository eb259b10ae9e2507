-- The outbox: at most one order a URL and sink. The orders of a sink by URL and by number; those that wait, deletes and pushes each in
-- their order; those that are parked.

function outbox.key(sink, what) return PREFIX.outbox .. sink .. ":" .. what end

function outbox.strike_out(sink, url, number)
  call("HDEL", outbox.key(sink, "url"), url)
  call("HDEL", outbox.key(sink, "order"), number)
  call("HDEL", outbox.key(sink, "kept"), number)
  call("HDEL", outbox.key(sink, "reason"), number)
  call("ZREM", outbox.key(sink, "delete"), number)
  call("ZREM", outbox.key(sink, "push"), number)
  call("ZREM", outbox.key(sink, "parked"), number)
end

-- Note by when the orders of a minute are given: `noted` in `state/order_times.py`. Once a call.
forget_after_call(function() outbox.is_noted = false end)
function outbox.note_time(number)
  outbox.is_noted = true
  local now = outbox.now or math.floor(ownership.now_ms() / 1000)
  local text = call("HGET", keys.meta, "order_times") or "[]"
  local last = tonumber(string.match(string.sub(text, -20), "(%d+)%]%]$") or nil)  -- without reading the others
  if last and last > now and last - now <= 60 then return end
  local is_read, notes = pcall(cjson.decode, text)
  if not is_read or type(notes) ~= "table" then notes = {} end
  for _, note in ipairs(notes) do
    if type(note) ~= "table" or type(note[1]) ~= "number" or type(note[2]) ~= "number" then notes = {} end
  end
  notes[#notes + 1] = {number, now + 60}
  if #notes > 200 then
    local kept = {}
    for n = 1, 100, 2 do kept[#kept + 1] = {notes[n][1], notes[n + 1][2]} end
    for n = 101, #notes do kept[#kept + 1] = notes[n] end
    notes = kept
  end
  call("HSET", keys.meta, "order_times", cjson.encode(notes))
end

-- Give an order to one sink or all; it replaces an older one of the same URL. Call `flush` afterwards.
function outbox.give(op, id, url, only)
  local number = records.next_number("orders")
  if not outbox.is_noted then outbox.note_time(number) end
  for _, sink in ipairs(only and {only} or SINKS) do
    local older = call("HGET", outbox.key(sink, "url"), url)
    if older then outbox.strike_out(sink, url, older) end
    call("HSET", outbox.key(sink, "url"), url, number)
    call("HSET", outbox.key(sink, "order"), number, op .. ":" .. id .. ":" .. url)
    call("ZADD", outbox.key(sink, op == 1 and "delete" or "push"), number, number)
  end
  local row = op == 0 and not only and get(id)
  if row then
    row[ORDERED] = number
    touch(id)
  end
end

-- Store this document with the waiting pushes of a URL, so that later changes of the URL don't affect them.
function outbox.keep_orders(url, document, only)
  for _, sink in ipairs(only and {only} or SINKS) do
    local number = call("HGET", outbox.key(sink, "url"), url)
    if number and string.sub(call("HGET", outbox.key(sink, "order"), number) or "", 1, 1) == "0" then
      call("HSETNX", outbox.key(sink, "kept"), number, pack(document))
    end
  end
end

-- Operations of an index on the outbox.

function reads.orders(args)
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

-- Remove orders of a sink, each with its number and URL, and the texts that nothing needs any more; `ids` are those of the URLs.
function outbox.remove(sink, orders, ids)
  prefetch(ids)
  for _, id in ipairs(ids) do
    if get(id) and rows[id][CHECKSUM] then groups.entry_of(rows[id][CHECKSUM]) end
  end
  for _, order in ipairs(orders) do outbox.strike_out(sink, order[2], order[1]) end
  groups.drop_texts(ids)
end

function writes.acknowledge(args)
  local ids, done = {}, {}
  for _, order in ipairs(args.orders) do
    local number, url = order[1], order[2]
    if tonumber(call("HGET", outbox.key(args.sink, "url"), url) or -1) == number then
      local text = call("HGET", outbox.key(args.sink, "order"), number) or ""
      ids[#ids + 1] = tonumber(string.match(text, "^%d:(%d+):") or error("the order " .. number .. " is damaged"))
      done[#done + 1] = order
    end
  end
  outbox.remove(args.sink, done, ids)
end

-- Remove the pushes of a sink, parked ones too; with `deletes` all of its orders.
function writes.withdraw(args)
  local ids, struck = {}, {}
  for _, list in ipairs({"push", "parked", args.deletes and "delete" or nil}) do
    for _, number in ipairs(call("ZRANGE", outbox.key(args.sink, list), 0, -1)) do
      local op, id, url = string.match(call("HGET", outbox.key(args.sink, "order"), number) or "", "^(%d):(%d+):(.*)$")
      if not op then error("the order " .. number .. " is damaged") end
      if args.deletes or op == "0" then
        ids[#ids + 1] = tonumber(id)
        struck[#struck + 1] = {number, url}
      end
    end
  end
  outbox.remove(args.sink, struck, ids)
end

-- For each URL: 1 where its order is parked, 0 where it waits, -1 where there is none.
function reads.ordered(args)
  local found = {}
  for n, url in ipairs(args.urls) do
    local number = call("HGET", outbox.key(args.sink, "url"), url)
    found[n] = not number and -1 or call("ZSCORE", outbox.key(args.sink, "parked"), number) and 1 or 0
  end
  return found
end

-- Whether the index has the document of a URL, its own or one left for another collection.
function groups.is_in_index(id)
  local row = id and get(id)
  return row and (row[CHECKSUM] and groups.representative_of(id, row) == id or groups.is_left_in_index(id))
end

-- `urls` are URLs, each with its key; returns the positions of those that are in the index.
function reads.in_index(args)
  local found = {}
  for position, one in ipairs(args.urls) do
    if groups.is_in_index(url_keys.id_of(one[1], one[2])) then found[#found + 1] = position end
  end
  return found
end

-- As for `in_index`.
function writes.delete_again(args)
  local unwanted = {}
  for _, one in ipairs(args.urls) do
    local id = url_keys.id_of(one[1], one[2])
    if not groups.is_in_index(id) then unwanted[#unwanted + 1] = {id or 0, one[1]} end
  end
  for _, one in ipairs(unwanted) do outbox.give(1, one[1], one[2], args.sink) end
end

function writes.park(args)
  if tonumber(call("HGET", outbox.key(args.sink, "url"), args.url) or -1) ~= args.number then return end
  call("ZREM", outbox.key(args.sink, "delete"), args.number)
  call("ZREM", outbox.key(args.sink, "push"), args.number)
  call("ZADD", outbox.key(args.sink, "parked"), args.number, args.number)
  call("HSET", outbox.key(args.sink, "reason"), args.number, args.reason)
end

-- Unpark orders, each at its number; return their number.
function writes.unpark(args)
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

function reads.parked(args)
  local found = {}
  for _, number in ipairs(call("ZRANGE", outbox.key(args.sink, "parked"), 0, -1)) do
    local op, url = string.match(call("HGET", outbox.key(args.sink, "order"), number), "^(%d):%d+:(.*)$")
    found[#found + 1] = {tonumber(op), url, call("HGET", outbox.key(args.sink, "reason"), number)}
  end
  return found
end

-- The archive: its files, the locations of records, and documents that are pushed again.

function writes.add_archive_file(args)
  local known = call("HGETALL", keys.archive_file)
  for n = 1, #known, 2 do
    if known[n + 1] == args.name then return tonumber(known[n]) end
  end
  later("HSET", keys.archive_file, #known / 2 + 1, args.name)
  return #known / 2 + 1
end

-- `moves` are ids, each with the old location and the new one, false for none.
function writes.move_archived(args)
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
function writes.push_again(args)
  local ids, orders, unable = {}, {}, {}
  for n, one in ipairs(args.documents) do ids[n] = one[1] end
  prefetch(ids)
  for _, one in ipairs(args.documents) do
    local id, given = one[1], one[2]
    local row = get(id)
    if row and row[CHECKSUM] and groups.representative_of(id, row) == id then
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
