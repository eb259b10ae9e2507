-- Discovery and results. A worker records the URLs that it has leased; those lost when it expired are ignored. A change is
-- `{id, state, forget, together_with, keep, leaves_group, stays, drops, document, text, fields, links, discovered, refused}`: `leaves_group` and
-- `stays` are what `leaves_group` and `stays_in_index` in `duplicates.py` return for it, `drops` is whether the entries of the page in the sample of
-- refused links are out of date. Its state is the new record, except for computed and constant fields (`fields.py`).

forget_after_call(function()
  record.effects = {discovered = 0, pending = {}}
  record.nearer = {}  -- by id: the old depth, if it was lowered
  record.links = {}   -- by id: links that this call has read or set
  record.before = {}  -- by id, of URLs that will change: key, depth, links, state and checksum
  record.marks = {}   -- by key: marks to be written
end)

-- The keys that a page links to; an error if they are damaged.
function record.links_of(id)
  local links = record.links[id] or call("HGET", keys.links, id) or ""
  if #links % 8 ~= 0 then error("the links of the URL " .. id .. " are no keys") end
  record.links[id] = links
  return links
end

function record.set_links(id, links)
  record.links[id] = links
  if links == "" then later("HDEL", keys.links, id) else later("HSET", keys.links, id, links) end
end

function record.count_pending(site) record.effects.pending[site] = (record.effects.pending[site] or 0) + 1 end

-- Note the scheme of a site's URL, see `sites.py`; `noted` has those of this call.
function record.note_scheme(url, site, noted)
  local scheme = string.byte(url, 5) == 58 and "http" or "https"
  local one = scheme .. " " .. site
  if noted[one] then return end
  noted[one] = true
  local port = string.match(site, ":(%d+)$")
  if not (port == "443" and scheme == "https" or port == "80" and scheme == "http") then later("SADD", keys.schemes, one) end
end

function record.discover(urls, now)
  for _, new in ipairs(urls) do url_keys.ids_with(new[1]) end
  local met = {}
  for _, new in ipairs(urls) do
    for _, id in ipairs(url_keys.ids_with(new[1])) do met[#met + 1] = id end
  end
  prefetch(met)
  local noted = {}
  for _, new in ipairs(urls) do
    local key, url, site, source, shift, depth = new[1], new[2], new[3], new[4], new[5], new[6]
    local id = url_keys.id_of(url, key)
    if not id then
      record.note_scheme(url, site, noted)
      id = records.next_number("urls")
      rows[id] = {
        FORMAT, url, key, sites.number(site), PENDING, nil, source, shift, depth, new[7], new[8], now, new[11], new[9],
        [RETRIES] = 0, [ERRORS] = 0, [RULES] = 0, [HELD_MARK] = 0,
      }
      url_keys.add(key, id)
      touch(id)
      record.effects.discovered = record.effects.discovered + 1
      record.count_pending(site)
    else
      local row = rows[id]
      if row[STATE] == PENDING and source < row[SOURCE] then
        row[SOURCE], row[SHIFT] = source, shift
        touch(id)
        record.effects.pending[site] = record.effects.pending[site] or 0
      end
      if depth < row[DEPTH] then
        record.nearer[id] = record.nearer[id] or row[DEPTH]
        row[DEPTH], row[DEPTH_FROM] = depth, new[11]
        touch(id)
      end
    end
  end
end

-- Lower the links of URLs with a smaller depth, lowest first, until nothing changes; return those that were crawled already.
-- A URL keeps its giver once it has been processed: two redirects that lead to each other would else give each other their depth.
-- Links that are not stored are marked: such a URL may be found again by a page that is farther.
function record.carry()
  local waiting, deepest, depth, carried, done = {}, -1, 0, {}, {}
  local function wait(id)
    local own = rows[id][DEPTH]
    waiting[own] = waiting[own] or {}
    waiting[own][#waiting[own] + 1] = id
    deepest = math.max(deepest, own)
  end
  for id in pairs(record.nearer) do wait(id) end
  while depth <= deepest do
    local some = {}
    for _, id in ipairs(waiting[depth] or {}) do
      if rows[id][DEPTH] == depth and not done[id] then
        some[#some + 1], done[id] = id, true
      end
    end
    waiting[depth] = nil
    for _, id in ipairs(some) do
      local row = rows[id]
      local reach = depth + (row[STATE] == REDIRECTED and 0 or 1)
      for _, key in ipairs(url_keys.of_links(record.counting_links(id, row))) do
        local others = url_keys.rows_with(key)
        if #others == 0 then record.mark_depth(key, 0, reach) end
        for _, other in ipairs(others) do
          local target = rows[other]
          if reach < target[DEPTH] then
            record.nearer[other] = record.nearer[other] or target[DEPTH]
            target[DEPTH], target[DEPTH_FROM], carried[other] = reach, id, true
            touch(other)
            wait(other)
          elseif reach == target[DEPTH] and carried[other] and not done[other] then
            target[DEPTH_FROM] = math.min(target[DEPTH_FROM], id)
          end
        end
      end
    end
    if not waiting[depth] then depth = depth + 1 end
  end
  local lowered = {}
  for _, id in ipairs(groups.sorted(record.nearer)) do
    local before, now = record.nearer[id], rows[id][DEPTH]
    if rows[id][STATE] ~= PENDING and now < before then lowered[#lowered + 1] = {id, before, now} end
  end
  if #lowered > 0 then later("HSET", keys.meta, "depths_lowered", 1) end
  return lowered
end

-- Whether the links of a URL count, see `depths.py`.
function record.leads_on(row)
  return row[STATE] ~= GONE and (row[STATE] ~= EXCLUDED or LINKS_ONLY[row[STATUS]] == true)
end

function record.counting_links(id, row)
  return record.leads_on(row) and record.links_of(id) or ""
end

function record.remember_links(id, row)
  record.before[id] = record.before[id] or {row[KEY], row[DEPTH], record.counting_links(id, row), row[STATE], row[CHECKSUM]}
end

-- As `merged` in `depths.py`.
function record.mark_depth(key, page, depth)
  local before = record.marks[key] or call("HGET", keys.depth_mark, key)
  local of, was = string.match(before or "", "^(%d+) (-?%d+)$")
  if of == "0" then page, depth = 0, page == 0 and math.min(depth, tonumber(was)) or -1 end
  record.marks[key] = string.format("%.0f %.0f", page, depth)
  later("HSET", keys.depth_mark, key, record.marks[key])
end

-- As in `depths.py`.
function record.may_redirect(state, has_document)
  return state == REDIRECTED or (state == FAILED or state == PENDING) and not has_document
end

-- Mark URLs that got their depth from changed URLs which do not link to them any more, and forgotten ones.
function record.mark_depths()
  for _, id in ipairs(groups.sorted(record.before)) do
    local key, depth, links, state, checksum = unpack(record.before[id], 1, 5)
    local row = rows[id]
    if not row then record.mark_depth(key, 0, depth) end
    local is_deeper = row and record.may_redirect(state, checksum) and row[STATE] ~= REDIRECTED and row[STATE] ~= FAILED and row[STATE] ~= PENDING
    local links_now = row and not is_deeper and record.counting_links(id, row) or ""
    if links ~= "" and links ~= links_now then
      local still = {}
      for _, target in ipairs(url_keys.of_links(links_now)) do still[target] = true end
      for _, target in ipairs(url_keys.of_links(links)) do
        for _, other in ipairs(still[target] and {} or url_keys.rows_with(target)) do
          if rows[other][DEPTH_FROM] == id then record.mark_depth(target, id, -1) end
        end
      end
    end
  end
end

function record.forget(id, row)
  url_keys.drop(row[KEY], id)
  record.set_links(id, "")
  later("HDEL", keys.document, id)
  inheritance.forget(id)
  rows[id] = false
  touch(id)
  record.nearer[id] = nil
  later("HINCRBY", keys.counters, "forgotten", 1)
end

function record.apply(id, change)
  local old, new = rows[id], change.state
  groups.remember(id, old)
  refused.note(id, change, old[REFUSED])
  local checksum, canon, simhash = not change.forget and new[CHECKSUM] or nil, new[CANONICAL], new[SIMHASH]
  if checksum and not change.document then checksum, canon, simhash = old[CHECKSUM], old[CANONICAL], old[SIMHASH] end
  local own = string.format("held%012.0f", id)
  if checksum and change.leaves_group and checksum ~= own then  -- see `stored_checksum` in `duplicates.py`
    local is_there = was[id].checksum and groups.representative_of(id, {[CHECKSUM] = was[id].checksum}) == id
    checksum, canon = (is_there or change.document) and own or nil, NO_PAGE
    groups.left_group[id] = groups.left_group[id] or checksum ~= nil
    if not checksum and new[HELD] == HELD_FOR.MANY then new[HELD] = nil end  -- a duplicate: it has nothing in the index
  elseif checksum == own then
    canon = NO_PAGE
  end
  if not checksum then
    groups.part(id, old, change)
    later("HDEL", keys.document, id)
    groups.new_texts[id] = nil
  elseif change.document then
    later("HSET", keys.document, id, change.document)
    groups.new_texts[id] = change.text
  end
  if change.forget then
    record.forget(id, old)
    return
  end
  local row = {}
  for position = 1, LAST do row[position] = new[position] end
  row[1] = old[1]
  for _, position in ipairs(NAMES.kept) do row[position] = old[position] end
  row[DEPTH] = math.min(old[DEPTH], new[DEPTH])
  if new[ARCHIVED] == nil then row[ARCHIVED] = old[ARCHIVED] end
  row[ARCHIVED] = row[ARCHIVED] or nil  -- false: it has no location any more
  row[LEASE_UNTIL], row[CHECKSUM], row[CANONICAL] = nil, checksum, canon
  row[SIMHASH] = checksum and checksum ~= own and simhash or nil
  rows[id] = row
  touch(id)
  if change.links then record.set_links(id, change.links) end
  local leads_again = record.leads_on(row) and not record.leads_on(old)  -- as in `depths.py`
  if old[DEPTH] ~= new[DEPTH] or leads_again then record.nearer[id] = record.nearer[id] or math.max(old[DEPTH], new[DEPTH]) end
  if row[STATE] == PENDING and not (old[STATE] == PENDING and not old[LEASE_UNTIL]) then record.count_pending(sites.name(row[SITE])) end
end

-- Keep documents that may be left in the index, before anything changes.
function record.keep_documents(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row then
      groups.remember(id, row)
      if groups.has_order(row[URL]) then groups.kept_documents[id] = groups.document_of(id) end
    end
  end
end

function record.replied(lowered, pushes, deletes, displaced, inherits)
  flush()
  local pending = {}
  for site, count in pairs(record.effects.pending) do
    pending[#pending + 1] = site
    pending[#pending + 1] = count
  end
  return {record.effects.discovered, pending, lowered, pushes, deletes, displaced or 0, inherits or false}
end

-- A folded URL is never leased: it is forgotten together with the change of the URL that it was folded into.
function record.is_folded(row, change) return change.forget and row[HELD] == HELD_FOR.FOLDED and not row[LEASE_UNTIL] end

-- An unleased redirect changes together with its target.
function record.is_redirect(id, row, change)
  local waits = row[STATE] == FAILED and row[HELD] == HELD_FOR.HOST
  return change.together_with and not cache.holders[id] and (waits or row[STATE] == REDIRECTED)
end

-- Whether a worker may record a change: it has leased the URL, or the change belongs to one that is recorded.
function record.may_change(change, number, is_recorded)
  local id, row = change.id, rows[change.id]
  if cache.holders[id] == number then return true end
  local follows = record.is_folded(row, change) or record.is_redirect(id, row, change)
  return follows and (not change.together_with or is_recorded[change.together_with])
end

function record.completed(state)
  for position in pairs(ZERO) do state[position] = state[position] or 0 end
  return state
end

-- `answered` are the numbers of sites of which a leased URL was recorded. For other sites another worker may have newer state.
function record.write_health(health, worker, answered)
  for _, one in ipairs(health) do
    local site = worker and sites.find(one[1])
    if not worker or (site and (answered[site] or queue.holds(worker, site))) then later("HSET", keys.health, one[1], one[2]) end
  end
end

function writes.discover(args)
  record.discover(args.urls, args.now)
  local lowered = record.carry()
  for _, new in ipairs(args.urls) do
    if new[10] then
      local id = url_keys.id_of(new[2], new[1])
      later("HSETNX", keys.inherited, id, new[10])
    end
  end
  cache.check()
  return record.replied(lowered, 0, 0)
end

function writes.record(args)
  local number, before
  if args.worker then number, before = ownership.caller(args) end
  if before then return before end
  for id, seen in pairs(args.expected or {}) do
    local row = get(id)
    if not row or cache.encoded(row) ~= seen then return false end
  end
  local ids, kept = {}, {}
  for n, change in ipairs(args.changes) do
    ids[n] = change.id
    if change.keep or change.leaves_group then kept[#kept + 1] = change.id end
  end
  prefetch(ids)
  record.keep_documents(kept)
  local discovered, is_recorded, answered = {}, {}, {}
  for _, change in ipairs(args.changes) do
    local id = change.id
    local is_held = get(id) and (not args.worker or (number and record.may_change(change, number, is_recorded)))
    -- A worker that has not expired uses the rules of all workers, and caches URLs that it has found: they are inserted wherever they were
  -- found.
    if is_held or number then
      for _, new in ipairs(change.discovered or {}) do discovered[#discovered + 1] = new end
    end
    if is_held then
      is_recorded[id] = true
      if change.fields then inheritance.set("fields", id, change.fields ~= "" and change.fields or nil) end
      record.completed(change.state)
      record.remember_links(id, rows[id])
      answered[rows[id][SITE]] = true
      record.apply(id, change)
    end
  end
  refused.replace()
  record.discover(discovered, args.now)
  local lowered = record.carry()
  record.mark_depths()
  local inherits = inheritance.add(args.pages, is_recorded, args.any_metadata, args.now) or call("EXISTS", keys.to_inherit) == 1
  local pushes, deletes, displaced = groups.settle()
  record.write_health(args.health, args.worker, answered)
  local reply = record.replied(lowered, pushes, deletes, displaced, inherits)
  return number and ownership.remembered(args, reply) or reply
end

function record.copied(row)
  local copy = {}
  for position = 1, LAST do copy[position] = row[position] end
  return copy
end

-- Return a copy of a record with other values, by position; false removes an element.
function record.with(row, ...)
  local new = record.copied(row)
  for _, values in ipairs({...}) do
    for position, value in pairs(values) do new[position] = value or nil end
  end
  return new
end

function writes.reclassify(args)
  for _, list in ipairs({args.excluded, args.given_up, args.unindexed, args.forgotten}) do prefetch(list) end
  for _, list in ipairs({args.given_up, args.held, args.held_unindexed}) do record.keep_documents(list) end
  local function each(ids, make)
    for _, id in ipairs(ids) do
      local row = get(id)
      if row then make(id, row) end
    end
  end
  local function due(row, ...)  -- no later than its last fetch (`at_once`)
    return record.with(row, WRITES.DUE, {[NEXT_FETCH] = math.min(args.now, row[FETCHED_AT] or args.now)}, ...)
  end
  local function exclude(ids, status, keep, is_due)
    each(ids, function(id, row)
      local excluded = record.with(row, WRITES.EXCLUDED, {[STATUS] = status})
      record.apply(id, {state = is_due and due(excluded) or excluded, keep = keep, drops = true})
    end)
  end
  exclude(args.excluded, STATUSES.EXCLUDED)
  exclude(args.given_up, STATUSES.EXCLUDED_HERE, true)
  exclude(args.unindexed, STATUSES.NOINDEX, nil, true)
  each(args.forgotten, function(id, row)
    record.apply(id, {state = row, forget = true, drops = true})
    later("HDEL", keys.link_metadata, id)
  end)
  local holds = {{args.held, WRITES.HELD, 0, true}, {args.held_unindexed, WRITES.HELD, 1, true}, {args.held_folded, WRITES.HELD_FOLDED, 0}}
  for _, hold in ipairs(holds) do
    local ids, values, mark, leaves_group = unpack(hold, 1, 4)
    prefetch(ids)
    each(ids, function(id, row)
      record.apply(id, {state = record.with(row, values, {[HELD_MARK] = mark}), keep = true, leaves_group = leaves_group})
    end)
  end
  prefetch(args.returned)
  each(args.returned, function(id, row)
    if OUT_OF_SPACE[row[STATUS]] then
      record.apply(id, {state = record.with(row, WRITES.PENDING_AGAIN), keep = true})
    elseif row[STATE] ~= PENDING then
      record.apply(id, {state = due(row, WRITES.NOT_HELD), keep = true})
    end
  end)
  prefetch(args.due)
  each(args.due, function(id, row)
    if row[STATE] ~= PENDING and row[NEXT_FETCH] then record.apply(id, {state = due(row), keep = true}) end
  end)
  for _, move in ipairs(args.moved) do
    local row = get(move[1])
    if row then
      row[SOURCE], row[SHIFT] = move[2], move[3]
      touch(move[1])
    end
  end
  refused.replace()
  local pushes, deletes, displaced = groups.settle()
  return record.replied({}, pushes, deletes, displaced)
end
