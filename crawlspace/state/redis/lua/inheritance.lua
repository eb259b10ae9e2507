-- Metadata that URLs inherit from the pages that link to them, see `inherited_metadata.py`. By id: `inherited` is what a URL inherits, `by` its
-- source page, `to:…` are the ids that inherit from a page, `link_metadata` is what the links of a page inherit.

local inheritance = {}
local record = {}  -- see `record.lua`
inheritance.DAY_S = 86400

-- A value of a hash by id, as this call has set it; `set_value` without a value removes it.
inheritance.values = {inherited = {}, by = {}, link_metadata = {}, fields = {}}
function inheritance.value_of(name, id)
  local value = inheritance.values[name][id]
  if value == nil then value = call("HGET", P .. name, id) end
  return value or nil
end

function inheritance.set_value(name, id, value)
  inheritance.values[name][id] = value or false
  if value then later("HSET", P .. name, id, value) else later("HDEL", P .. name, id) end
end

function inheritance.inherited_of(id) return inheritance.value_of("inherited", id) end

function inheritance.revoke(id, page)
  inheritance.set_value("by", id, nil)
  later("SREM", P .. "to:" .. page, id)
end

-- Damaged metadata counts as none, as in `encoding.py`.
function inheritance.object(text)
  local fine, found = pcall(cjson.decode, text or "{}")
  return fine and type(found) == "table" and found or {}
end

function inheritance.fields_of(id)
  local fine, found = pcall(unpack_one, inheritance.value_of("fields", id) or "")
  return fine and type(found) == "table" and found or {}
end

-- Whether a document with these fields, made while its URL inherited `before`, would have others now.
function inheritance.shows_other(fields, before, now)
  local old, new = inheritance.object(before), inheritance.object(now)
  for name, value in pairs(new) do
    if fields[name] == nil or (fields[name] == old[name] and old[name] ~= value) then return true end
  end
  for name, value in pairs(old) do
    if new[name] == nil and fields[name] == value then return true end
  end
  return false
end

function inheritance.may_be_hastened(row)
  return (row[STATE] == DONE or row[STATE] == REDIRECTED) and not row[LEASE] and row[NEXT]
end

function inheritance.hasten(id, before, rules, now, due)
  local row = get(id)
  if not row or not inheritance.may_be_hastened(row) then return end
  local inherited, differs = inheritance.inherited_of(id), nil
  if row[STATE] == REDIRECTED then
    differs = before ~= inherited
  else
    differs = inheritance.shows_other(row[CHECKSUM] and inheritance.fields_of(id) or {}, before, inherited)
  end
  if not differs then return end
  local last = tonumber(call("HGET", P .. "mark", id) or nil)
  local at, mark = now, math.floor(now / inheritance.DAY_S) * 16777216 + rules
  if last and mark <= last then
    at, mark = (math.floor(now / inheritance.DAY_S) + 1) * inheritance.DAY_S, last
  else
    at = math.min(now, row[FETCHED] or now)  -- in this run, too
  end
  if at < row[NEXT] then
    row[NEXT] = at
    touch(id)
    later("HSET", P .. "mark", id, string.format("%.0f", mark))
    due[#due + 1] = {id, at}
  end
end

function inheritance.keys_of(links)
  local keys = {}
  for first = 1, #links, 8 do keys[#keys + 1] = string.sub(links, first, first + 7) end
  return keys
end

-- `pages` by id: what the changes of a page come to; `order` are their ids in the order of the changes.
function inheritance.settle(pages, order, gone, now)
  local due, any = {}, call("EXISTS", P .. "link_metadata") == 1 or call("EXISTS", P .. "inherited") == 1
  if not any then
    for _, page in pairs(pages) do any = any or (page.word and page.word.link_metadata) or page.fetched_with end
  end
  if any then
    local before, said = {}, {}
    local function note(id)
      if before[id] == nil then before[id] = inheritance.inherited_of(id) or false end
    end
    for id in pairs(pages) do note(id) end
    for _, id in ipairs(order) do
      local page = pages[id]
      if page.word then
        local leads = {}
        for _, key in ipairs(inheritance.keys_of(page.word.links)) do leads[key] = true end
        local told = {}
        for n, member in ipairs(call("SMEMBERS", P .. "to:" .. id)) do told[n] = tonumber(member) end
        prefetch(told)
        for _, other in ipairs(told) do
          local row = rows[other]
          if row then
            note(other)
            local link_metadata = leads[row[KEY]] and page.word.link_metadata or nil
            if link_metadata ~= inheritance.inherited_of(other) then
              inheritance.set_value("inherited", other, link_metadata)
              said[other] = page.rules
            end
          end
          if not row or not (leads[row[KEY]] and page.word.link_metadata) then inheritance.revoke(other, id) end
        end
      end
    end
    for _, id in ipairs(order) do
      local page = pages[id]
      if page.word then
        inheritance.set_value("link_metadata", id, page.word.link_metadata)
      end
      local link_metadata = (page.word or page.repeats) and inheritance.value_of("link_metadata", id)
      if link_metadata then
        local links = page.word and page.word.links or record.links_of(id)
        for _, key in ipairs(inheritance.keys_of(links)) do
          if key ~= page.key then
            for _, other in ipairs(url_keys.rows_with(key)) do
              if not inheritance.value_of("by", other) then
                note(other)
                if inheritance.inherited_of(other) ~= link_metadata then
                  inheritance.set_value("inherited", other, link_metadata)
                  said[other] = page.rules
                end
                inheritance.set_value("by", other, id)
                later("SADD", P .. "to:" .. id, other)
              end
            end
          end
        end
      end
    end
    for _, id in ipairs(groups.sorted(before)) do
      local had = before[id] or nil
      if pages[id] and pages[id].fetched_with ~= had then
        inheritance.hasten(id, pages[id].fetched_with, pages[id].rules, now, due)
      elseif said[id] then
        inheritance.hasten(id, had, said[id], now, due)
      end
    end
  end
  for id in pairs(gone) do
    local page = inheritance.value_of("by", id)
    if page then inheritance.revoke(id, page) end
    for _, what in ipairs({"inherited", "link_metadata", "mark", "fields"}) do later("HDEL", P .. what, id) end
  end
  return due
end

-- Check some of the URLs that inherit metadata. Return the cursor for the next call; "0": there are no more.
function ops.drop_inherited(args)
  local found, ids = call("HSCAN", P .. "inherited", args.cursor, "COUNT", args.limit), {}
  for n = 1, #found[2], 2 do ids[#ids + 1] = tonumber(found[2][n]) end
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row, page = get(id), call("HGET", P .. "by", id)
    local speaker = page and get(tonumber(page))
    local out = speaker and (speaker[STATUS] == OUTSIDE or speaker[STATUS] == OUTSIDE_HERE)
    if row and (not page or out) then
      inheritance.set_value("inherited", id, nil)
      if page then inheritance.revoke(id, page) end
      if inheritance.may_be_hastened(row) and row[FETCHED] then
        row[NEXT] = math.min(row[NEXT], row[FETCHED])
        touch(id)
      end
    end
  end
  flush()
  return found[1]
end
