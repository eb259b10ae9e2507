-- What an index asks of the outbox.

function ops.orders(args)
  local sink, reply = args.sink, {}
  for op, list in pairs({[1] = "delete", [0] = "push"}) do reply[op] = call("ZRANGE", out(sink, list), 0, args.limit - 1) end
  local found = {}
  for _, op in ipairs({1, 0}) do
    for _, number in ipairs(reply[op]) do
      if #found == args.limit then return found end
      local id, url = string.match(call("HGET", out(sink, "order"), number), "^%d:(%d+):(.*)$")
      local document = {}
      if op == 0 then
        local kept = call("HGET", out(sink, "kept"), number)
        document = kept and unpack_one(kept) or document_of(tonumber(id)) or {}
      end
      found[#found + 1] = {tonumber(number), op, url, document}
    end
  end
  return found
end

function ops.acknowledge(args)
  local ids = {}
  for _, order in ipairs(args.orders) do
    local number, url = order[1], order[2]
    if tonumber(call("HGET", out(args.sink, "url"), url) or -1) == number then
      ids[#ids + 1] = tonumber(string.match(call("HGET", out(args.sink, "order"), number), "^%d:(%d+):"))
      strike_out(args.sink, url, number)
    end
  end
  prefetch(ids)
  drop_texts(ids)
end

function ops.park(args)
  if tonumber(call("HGET", out(args.sink, "url"), args.url) or -1) ~= args.number then return end
  call("ZREM", out(args.sink, "delete"), args.number)
  call("ZREM", out(args.sink, "push"), args.number)
  call("ZADD", out(args.sink, "parked"), args.number, args.number)
  call("HSET", out(args.sink, "reason"), args.number, args.reason)
end

function ops.parked(args)
  local found = {}
  for _, number in ipairs(call("ZRANGE", out(args.sink, "parked"), 0, -1)) do
    local op, url = string.match(call("HGET", out(args.sink, "order"), number), "^(%d):%d+:(.*)$")
    found[#found + 1] = {tonumber(op), url, call("HGET", out(args.sink, "reason"), number)}
  end
  return found
end
