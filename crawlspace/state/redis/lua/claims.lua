-- A worker may need a site that has no URLs for it, or that another worker owns: the robots.txt of other sites may redirect there. `claimed`
-- has by site the worker that waits for it; `kept` the worker for which a released site is reserved, and until when.

-- Give a worker these sites, without URLs, unless other workers own them. These learn of the claim with their next heartbeat.
function ops.claim(args)
  if not alive.caller(args) then return false end
  local now, acquired = now_ms(), {}
  for _, name in ipairs(args.sites) do
    local site = sites.number(name)
    local owner = call("HGET", keys.owner, site)
    local not_before = 0
    if not owner then
      local till, before, waiting = string.match(call("HGET", keys.kept, site) or "", "^(%d+) (%d+) (.*)$")
      if till and tonumber(till) > now and ownership.is_alive(waiting) then
        owner, not_before = waiting, tonumber(before)
      else
        not_before = tonumber(call("ZSCORE", keys.free, site) or 0)
      end
    end
    if owner and owner ~= args.worker then
      local first = call("HGET", keys.claimed, site)  -- who came first is served first
      if not (first and ownership.is_alive(first)) then call("HSET", keys.claimed, site, args.worker) end
    else
      call("HDEL", keys.kept, site)
      call("ZREM", keys.free, site)
      call("ZREM", keys.later, site)
      call("HSET", keys.owner, site, args.worker)
      call("SADD", alive.owned_key(args.worker), site)
      waits.bounded(site, args.now)
      local it = taking.site_reply(site, {""}, now, false)
      it[4] = math.max(it[4], not_before > now and args.now + math.ceil((not_before - now) / 1000) or 0)  -- a site that fails rests
      acquired[#acquired + 1] = it
    end
  end
  return acquired
end
