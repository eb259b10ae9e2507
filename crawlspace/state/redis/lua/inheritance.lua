-- What pages hand to the URLs they lead to: see `inherited_metadata.py`, which says what holds. `handed` is by id what has been handed to a URL, `by` by
-- which page; `to:…` are the ids of those to which a page's word has come, `hands` is by id what a page hands.

local DAY_S = 86400

local function inherited_of(id) return call("HGET", P .. "inherited", id) or nil end

local function hand(id, text)
  if text then call("HSET", P .. "inherited", id, text) else call("HDEL", P .. "inherited", id) end
end

local function revoke(id, page)
  call("HDEL", P .. "by", id)
  call("SREM", P .. "to:" .. page, id)
end

local function object(text) return text and cjson.decode(text) or {} end

-- Whether a document with these fields, made while `before` was handed to it, would have others now.
local function shows_other(fields, before, now)
  local old, new = object(before), object(now)
  for name, value in pairs(new) do
    if fields[name] == nil or (fields[name] == old[name] and old[name] ~= value) then return true end
  end
  for name, value in pairs(old) do
    if new[name] == nil and fields[name] == value then return true end
  end
  return false
end

local function may_be_hastened(row)
  return (row[STATE] == DONE or row[STATE] == REDIRECTED) and not row[LEASE] and row[NEXT]
end

local function hasten(id, before, rules, now, due)
  local row = get(id)
  if not row or not may_be_hastened(row) then return end
  local inherited, differs = inherited_of(id), nil
  if row[STATE] == REDIRECTED then
    differs = before ~= inherited
  else
    local fields = row[CHECKSUM] and call("HGET", P .. "fields", id)
    differs = shows_other(fields and unpack_one(fields) or {}, before, inherited)
  end
  if not differs then return end
  local last = tonumber(call("HGET", P .. "mark", id) or nil)
  local at, mark = now, math.floor(now / DAY_S) * 16777216 + rules
  if last and mark <= last then
    at, mark = (math.floor(now / DAY_S) + 1) * DAY_S, last
  else
    at = math.min(now, row[FETCHED] or now)  -- in this run, too
  end
  if at < row[NEXT] then
    row[NEXT] = at
    touch(id)
    call("HSET", P .. "mark", id, string.format("%.0f", mark))
    due[#due + 1] = {id, at}
  end
end

local function keys_of(links)
  local keys = {}
  for first = 1, #links, 8 do keys[#keys + 1] = string.sub(links, first, first + 7) end
  return keys
end

-- `pages` by id: what the changes of a page come to; `order` are their ids in the order of the changes.
local function settle_handing(pages, order, gone, now)
  local due, any = {}, call("EXISTS", P .. "link_metadata") == 1 or call("EXISTS", P .. "inherited") == 1
  if not any then
    for _, page in pairs(pages) do any = any or (page.word and page.word.link_metadata) or page.fetched_with end
  end
  if any then
    local before, said = {}, {}
    local function note(id)
      if before[id] == nil then before[id] = inherited_of(id) or false end
    end
    for id in pairs(pages) do note(id) end
    for _, id in ipairs(order) do
      local page = pages[id]
      if page.word then
        local leads = {}
        for _, key in ipairs(keys_of(page.word.links)) do leads[key] = true end
        local told = {}
        for n, member in ipairs(call("SMEMBERS", P .. "to:" .. id)) do told[n] = tonumber(member) end
        prefetch(told)
        for _, other in ipairs(told) do
          local row = rows[other]
          if row then
            note(other)
            local link_metadata = leads[row[KEY]] and page.word.link_metadata or nil
            if link_metadata ~= inherited_of(other) then
              hand(other, link_metadata)
              said[other] = page.rules
            end
          end
          if not row or not (leads[row[KEY]] and page.word.link_metadata) then revoke(other, id) end
        end
      end
    end
    for _, id in ipairs(order) do
      local page = pages[id]
      if page.word then
        if page.word.link_metadata then call("HSET", P .. "link_metadata", id, page.word.link_metadata) else call("HDEL", P .. "link_metadata", id) end
      end
      local link_metadata = (page.word or page.repeats) and call("HGET", P .. "link_metadata", id)
      if link_metadata then
        local links = page.word and page.word.links or call("HGET", P .. "links", id) or ""
        for _, key in ipairs(keys_of(links)) do
          if key ~= page.key then
            for _, other in ipairs(rows_with(key)) do
              if call("HEXISTS", P .. "by", other) == 0 then
                note(other)
                if inherited_of(other) ~= link_metadata then
                  hand(other, link_metadata)
                  said[other] = page.rules
                end
                call("HSET", P .. "by", other, id)
                call("SADD", P .. "to:" .. id, other)
              end
            end
          end
        end
      end
    end
    for _, id in ipairs(sorted(before)) do
      local had = before[id] or nil
      if pages[id] and pages[id].fetched_with ~= had then
        hasten(id, pages[id].fetched_with, pages[id].rules, now, due)
      elseif said[id] then
        hasten(id, had, said[id], now, due)
      end
    end
  end
  for id in pairs(gone) do
    local page = call("HGET", P .. "by", id)
    if page then revoke(id, page) end
    for _, what in ipairs({"inherited", "link_metadata", "mark", "fields"}) do call("HDEL", P .. what, id) end
  end
  return due
end

-- Looks at some of the URLs to which something has been handed. Returns where to go on; "0": those were all.
function ops.drop_inherited(args)
  local found, ids = call("HSCAN", P .. "inherited", args.cursor, "COUNT", args.limit), {}
  for n = 1, #found[2], 2 do ids[#ids + 1] = tonumber(found[2][n]) end
  prefetch(ids)
  for _, id in ipairs(ids) do
    local row, page = get(id), call("HGET", P .. "by", id)
    local speaker = page and get(tonumber(page))
    local out = speaker and (speaker[STATUS] == OUTSIDE or speaker[STATUS] == OUTSIDE_HERE)
    if row and (not page or out) then
      hand(id, nil)
      if page then revoke(id, page) end
      if may_be_hastened(row) and row[FETCHED] then
        row[NEXT] = math.min(row[NEXT], row[FETCHED])
        touch(id)
      end
    end
  end
  flush()
  return found[1]
end
