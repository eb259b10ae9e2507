-- Moving a collection to here: see `state/move/redis.py`. A part of it is written together with the mark of how far the move has come.

-- URLs as `{id, record, site, the group of the page for which it stands aside, whether the index has its document}`. None is known yet.
local function move_urls(urls)
  local noted = {}
  for _, one in ipairs(urls) do
    note_scheme(one[2][URL], one[3], noted)
    if one[5] then call("HINCRBY", P .. "documents", site_number(one[3]), 1) end
    local id, row, aside = one[1], completed(one[2]), one[4]
    row[SITE] = site_number(one[3])
    rows[id] = row
    add_key(row[KEY], id)
    touch(id)
    asides[id] = aside or false
    if aside then call("HSET", P .. "aside", id, aside) end
    if row[CHECKSUM] then
      local entry = entry_of(row[CHECKSUM])
      entry.urls = entry.urls + 1
      changed_entries[row[CHECKSUM]] = true
      if row[CANON] then call("SADD", P .. "names:" .. row[CANON], id) end
    end
  end
  for _, one in ipairs(urls) do
    local checksum = rows[one[1]][CHECKSUM]
    if checksum then join(one[4] or checksum, one[1], one[4] ~= nil) end
  end
  write_entries()
  flush()
end

-- `before` and `mark` are the marks as it must be and as it is to be; none where the copy is done. `commands` are commands without the
-- beginning of their keys. Returns false where somebody else crawls the collection or moves it.
function ops.move_part(args)
  if call("ZCARD", P .. "workers") > 0 then return false end
  local at = call("HGET", P .. "meta", "moving") or nil
  if at == args.mark then return true end  -- the call is repeated because its answer was lost
  if at ~= args.before then return false end
  move_urls(args.urls)
  for _, wait in ipairs(args.waits) do call("HSET", P .. "wait", site_number(wait[1]), string.format("%.0f %.0f", wait[2], wait[3])) end
  for _, command in ipairs(args.commands) do call(command[1], P .. command[2], unpack(command, 3)) end
  if args.mark then
    call("HSET", P .. "meta", "moving", args.mark)
  else
    call("HDEL", P .. "meta", "moving")
    call("HSET", P .. "meta", "sites_counted", 1)
    call("DEL", P .. "free", P .. "later")  -- the first worker finds them by itself
  end
  return true
end

-- All that is kept of URLs, as one text: what is told of each (see `as_told`), then its links, its document, what it hands, whose word has been
-- handed to it and when it was last due for that, the group of the page for which it stands aside, whether it has left its document in
-- the index, the text of its checksum, where it brings that along, and whether it stands for its group as the incumbent. Looking changes nothing: so it is a kind of `get_ids`.
local get_ids = ops.get_ids
function ops.get_ids(args)
  if not args.whole then return get_ids(args) end
  prefetch(args.ids)
  local ids, found, reply = {}, {}, {}
  for _, id in ipairs(args.ids) do
    if get(id) then ids[#ids + 1] = id end
  end
  if #ids == 0 then return pack(reply) end
  for n, key in ipairs({"links", "document", "link_metadata", "by", "mark"}) do found[n] = call("HMGET", P .. key, unpack(ids)) end
  local left = call("SMISMEMBER", P .. "left", unpack(ids))
  for n, id in ipairs(ids) do
    local row, aside = rows[id], aside_then(id)
    local checksum, winner = row[CHECKSUM], winner_of(id, row)
    local one = {id, encoded(row), site_name(row[SITE]), winner or 0, inherited_of(id) or false}
    for _, kept in ipairs(found) do one[#one + 1] = kept[n] end
    local brings = checksum and (winner == id or (aside and aside ~= checksum))
    one[11], one[12], one[13] = aside, left[n] == 1, brings and call("HGET", P .. "text", checksum)
    one[13] = one[13] or false
    local group = winner == id and (aside or checksum)
    one[14] = group and tonumber(call("HGET", P .. "incumbent", group) or nil) == id
    reply[n] = one
  end
  return pack(reply)
end
