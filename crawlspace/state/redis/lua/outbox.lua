-- The outbox: at most one order a URL and sink. The orders of a sink by URL and by number; those that wait, deletes and pushes each in
-- their order; those put aside.

local SINKS = cjson.decode(ARGV[3])
local outbox = {}

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

-- Put an order in the place of an older one of the same URL, for one sink or all. Call `flush` afterwards.
function outbox.give(op, id, url, only)
  local number = records.next_number("orders")
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

-- Have the pushes of a URL that wait be sent with this document, whatever becomes of the URL.
function outbox.keep_orders(url, document, only)
  for _, sink in ipairs(only and {only} or SINKS) do
    local number = call("HGET", outbox.key(sink, "url"), url)
    if number and string.sub(call("HGET", outbox.key(sink, "order"), number) or "", 1, 1) == "0" then
      call("HSETNX", outbox.key(sink, "kept"), number, pack(document))
    end
  end
end
