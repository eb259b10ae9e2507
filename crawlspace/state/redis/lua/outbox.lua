-- The outbox: at most one order a URL and sink. The orders of a sink by URL and by number; those that wait, deletes and pushes each in
-- their order; those put aside.

local SINKS = cjson.decode(ARGV[3])

local function out(sink, what) return P .. "out:" .. sink .. ":" .. what end

local function strike_out(sink, url, number)
  call("HDEL", out(sink, "url"), url)
  call("HDEL", out(sink, "order"), number)
  call("HDEL", out(sink, "kept"), number)
  call("HDEL", out(sink, "reason"), number)
  call("ZREM", out(sink, "delete"), number)
  call("ZREM", out(sink, "push"), number)
  call("ZREM", out(sink, "parked"), number)
end

-- Put an order in the place of an older one of the same URL.
local function give(op, id, url)
  local number = call("HINCRBY", P .. "n", "orders", 1)
  for _, sink in ipairs(SINKS) do
    local older = call("HGET", out(sink, "url"), url)
    if older then strike_out(sink, url, older) end
    call("HSET", out(sink, "url"), url, number)
    call("HSET", out(sink, "order"), number, op .. ":" .. id .. ":" .. url)
    call("ZADD", out(sink, op == 1 and "delete" or "push"), number, number)
  end
end

-- Have the pushes of a URL that wait be sent with this document, whatever becomes of the URL.
local function keep_orders(url, document)
  for _, sink in ipairs(SINKS) do
    local number = call("HGET", out(sink, "url"), url)
    if number and string.sub(call("HGET", out(sink, "order"), number), 1, 1) == "0" then
      call("HSET", out(sink, "kept"), number, pack(document))
    end
  end
end
