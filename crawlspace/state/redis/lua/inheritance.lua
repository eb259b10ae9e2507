-- Metadata that URLs inherit from the pages that link to them. The changes after a batch are decided in `inherited_metadata.py`, from the list
-- `to_inherit`. By id: `inherited` is what a URL inherits, `by` its source page, `to:…` are the ids that have a page as their source page,
-- `link_metadata` is what the links of a page inherit, `mark` when a URL was last due for its metadata, `fields` are those of its document.

function inheritance.inherited_of(id) return call("HGET", keys.inherited, id) or nil end

-- Set a value of a hash; remove it where there is none.
function inheritance.set(name, id, value)
  if value then later("HSET", keys[name], id, value) else later("HDEL", keys[name], id) end
end

-- Add the pages of a batch to the list; return whether there are any. `pages` are ids with data from Python, `is_recorded` the ids that were
-- not ignored.
function inheritance.add(pages, is_recorded, any_metadata, now)
  if not any_metadata and call("EXISTS", keys.link_metadata) == 0 and call("EXISTS", keys.inherited) == 0 then return false end
  local added = {}
  for _, page in ipairs(pages) do
    if is_recorded[page[1]] then added[#added + 1] = page[2] end
  end
  if #added > 0 then later("RPUSH", keys.to_inherit, pack({now, added})) end
  return #added > 0
end

function inheritance.forget(id)
  local page = call("HGET", keys.by, id)
  if page then later("SREM", PREFIX.inheriting .. page, id) end
  for _, name in ipairs({"inherited", "by", "mark", "fields"}) do later("HDEL", keys[name], id) end
end

-- Write the changes decided for the first entry of the list; return false if it is not the first any more, or a URL to be made due has
-- changed.
function writes.write_inherited(args)
  if args.entry and call("LINDEX", keys.to_inherit, 0) ~= args.entry then return false end
  for _, due in ipairs(args.due) do
    local row = get(due[1])
    if not row or cache.encoded(row) ~= due[2] then return false end
  end
  for _, page in ipairs(args.link_metadata) do inheritance.set("link_metadata", page[1], page[2]) end
  for _, url in ipairs(args.urls) do
    local id, was, inherited, page = url[1], url[2], url[3], url[4]
    if was then later("SREM", PREFIX.inheriting .. was, id) end
    if get(id) then
      inheritance.set("inherited", id, inherited)
      inheritance.set("by", id, page)
      if page then later("SADD", PREFIX.inheriting .. page, id) end
    end
  end
  for _, due in ipairs(args.due) do
    local id, at, mark = due[1], due[3], due[4]
    rows[id][NEXT_FETCH] = at
    touch(id)
    if mark then later("HSET", keys.mark, id, mark) end
  end
  if args.entry then later("LPOP", keys.to_inherit) end
  cache.check()
  flush()
  return true
end

-- Return some of the ids that inherit metadata, and the cursor for the next call; "0": there are no more.
function reads.some_inheriting(args)
  local found, ids = call("HSCAN", keys.inherited, args.cursor, "COUNT", args.limit), {}
  for n = 1, #found[2], 2 do ids[#ids + 1] = tonumber(found[2][n]) end
  return {found[1], ids}
end
