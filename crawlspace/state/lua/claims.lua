-- A worker may need a site that has nothing for it, or that another one holds: the robots.txt of others may lie there. `claimed` is by site
-- who waits for it; `kept` until when it is kept for whom, after it was let go.

-- Give a worker these sites, with none of their URLs, where nobody else holds them. Whoever holds one of the others is told with its next beat.
function ops.claim(args)
  if not caller(args) then return false end
  local now, told = now_ms(), {}
  for _, name in ipairs(args.sites) do
    local site = site_number(name)
    local owner = call("HGET", P .. "owner", site)
    if not owner then
      local till, waiting = string.match(call("HGET", P .. "kept", site) or "", "^(%d+) (.*)$")
      if till and tonumber(till) > now and is_alive(waiting) then owner = waiting end
    end
    if owner and owner ~= args.worker then
      call("HSET", P .. "claimed", site, args.worker)
    else
      call("HDEL", P .. "kept", site)
      call("ZREM", P .. "free", site)
      call("ZREM", P .. "later", site)
      call("HSET", P .. "owner", site, args.worker)
      call("SADD", owned_key(args.worker), site)
      told[#told + 1] = site_told(site, {""}, now, false)
    end
  end
  return told
end
