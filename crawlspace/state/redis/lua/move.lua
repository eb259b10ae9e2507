-- Moving a collection to here: see `state/redis/dump.py`. Each part is written together with the mark of the move's progress.

-- URLs as `{id, record, site, the group in which it is an alternate, whether the index has its document, whether it is a near duplicate there}`.
-- None is known yet.
local function move_urls(urls)
  local noted = {}
  for _, one in ipairs(urls) do
    record.note_scheme(one[2][URL], one[3], noted)
    if one[5] then
      call("HINCRBY", keys.documents, sites.number(one[3]), 1)
      call("HINCRBY", keys.counters, "indexed", 1)
    end
    local id, row, alternate = one[1], record.completed(one[2]), one[4]
    row[SITE] = sites.number(one[3])
    rows[id] = row
    url_keys.add(row[KEY], id)
    touch(id)
    groups.alternates[id] = alternate or false
    if alternate then call("HSET", keys.alternate, id, alternate) end
    if one[6] then near.join(id, row[CHECKSUM], alternate) end
    if row[CHECKSUM] and row[SIMHASH] and not alternate then near.lead(row[CHECKSUM], row[SIMHASH]) end
    if row[CHECKSUM] then
      local entry = groups.entry_of(row[CHECKSUM])
      entry.urls = entry.urls + 1
      groups.changed_entries[row[CHECKSUM]] = true
      if row[CANONICAL] then call("SADD", PREFIX.names .. row[CANONICAL], id) end
    end
  end
  for _, one in ipairs(urls) do
    local checksum = rows[one[1]][CHECKSUM]
    if checksum then groups.join(one[4] or checksum, one[1], one[4] ~= nil) end
  end
  groups.write_entries()
  flush()
end

-- `before` and `mark` are the expected and the new mark; none where the copy is complete. `commands` are commands without the prefix of
-- their keys. Returns false if another process crawls or moves the collection.
function writes.move_part(args)
  if call("ZCARD", keys.workers) > 0 then return false end
  local at = call("HGET", keys.meta, "moving") or nil
  if at == args.mark then return true end  -- the call is repeated because its answer was lost
  if at ~= args.before then return false end
  move_urls(args.urls)
  for _, wait in ipairs(args.waits) do call("HSET", keys.wait, sites.number(wait[1]), string.format("%.0f %.0f", wait[2], wait[3])) end
  for _, command in ipairs(args.commands) do call(command[1], P .. command[2], unpack(command, 3)) end
  if args.mark then
    call("HSET", keys.meta, "moving", args.mark)
  else
    call("HDEL", keys.meta, "moving")
    call("DEL", keys.free, keys.later, keys.paused)  -- the first worker finds them by itself
  end
  return true
end
