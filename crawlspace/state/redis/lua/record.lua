-- Discovery and results. A worker records what it holds; what it was taken for dead over is another's by now, and passed over. A change is `{id, state, forget, keep, document, text, fields, links, discovered, word, hands, repeats,
-- fetched_with}`; its state is a record as it is to be, but for what the store owns and what a URL is born with.

local nearer = {}  -- by id: the depth that was, where it went down
local effects = {discovered = 0, pending = {}, fresh = {}}

local function count_pending(site) effects.pending[site] = (effects.pending[site] or 0) + 1 end

-- Note the scheme of a site's URL, see `sites.py`; `noted` has those of this call.
local function note_scheme(url, site, noted)
  local scheme = string.byte(url, 5) == 58 and "http" or "https"
  local one = scheme .. " " .. site
  if noted[one] then return end
  noted[one] = true
  local port = string.match(site, ":(%d+)$")
  if not (port == "443" and scheme == "https" or port == "80" and scheme == "http") then call("SADD", P .. "schemes", one) end
end

local function discover(urls, now)
  for _, new in ipairs(urls) do ids_with(new[1]) end
  local met = {}
  for _, new in ipairs(urls) do
    for _, id in ipairs(ids_with(new[1])) do met[#met + 1] = id end
  end
  prefetch(met)
  local noted = {}
  for _, new in ipairs(urls) do
    local key, url, site, source, shift, depth = new[1], new[2], new[3], new[4], new[5], new[6]
    local id = id_of(url, key)
    if not id then
      note_scheme(url, site, noted)
      id = call("HINCRBY", P .. "n", "urls", 1)
      rows[id] = {
        FORMAT, url, key, site_number(site), PENDING, nil, source, shift, depth, new[7], new[8], now, new[9],
        [RETRIES] = 0, [ERRORS] = 0, [RULES] = 0, [MARK] = 0,
      }
      add_key(key, id)
      touch(id)
      effects.discovered = effects.discovered + 1
      count_pending(site)
    else
      local row = rows[id]
      if row[STATE] == PENDING and source < row[SOURCE] then
        row[SOURCE] = source
        touch(id)
        effects.pending[site] = effects.pending[site] or 0
      end
      if depth < row[DEPTH] then
        nearer[id] = nearer[id] or row[DEPTH]
        row[DEPTH] = depth
        touch(id)
      end
    end
  end
end

-- Lower what the nearer URLs lead to, until nothing gets nearer any more; return what was crawled already.
local function carry()
  local waiting = sorted(nearer)
  while #waiting > 0 do
    local id = table.remove(waiting)
    local row = rows[id]
    local depth = row[DEPTH] + (row[STATE] == REDIRECTED and 0 or 1)
    for _, key in ipairs(keys_of(call("HGET", P .. "links", id) or "")) do
      for _, other in ipairs(rows_with(key)) do
        local target = rows[other]
        if depth < target[DEPTH] then
          nearer[other] = nearer[other] or target[DEPTH]
          target[DEPTH] = depth
          touch(other)
          waiting[#waiting + 1] = other
        end
      end
    end
  end
  local lowered = {}
  for _, id in ipairs(sorted(nearer)) do
    if rows[id][STATE] ~= PENDING then lowered[#lowered + 1] = {id, nearer[id], rows[id][DEPTH]} end
  end
  return lowered
end

local function forget(id, row)
  drop_key(row[KEY], id)
  call("HDEL", P .. "links", id)
  call("HDEL", P .. "document", id)
  rows[id] = false
  touch(id)
  nearer[id] = nil
  call("HINCRBY", P .. "n", "forgotten", 1)
end

local function apply(id, change)
  local old, new = rows[id], change.state
  remember(id, old)
  local checksum, canon = not change.forget and new[CHECKSUM] or nil, new[CANON]
  if checksum and not change.document then checksum, canon = old[CHECKSUM], old[CANON] end
  local own = string.format("held%012.0f", id)
  if checksum and incumbents.is_held_apart(new) and checksum ~= own then  -- see `held_apart` in `duplicates.py`
    local is_there = was[id].checksum and winner_of(id, {[CHECKSUM] = was[id].checksum}) == id
    checksum, canon = (is_there or change.document) and own or nil, string.rep("\255", 8)  -- NO_PAGE
    incumbents.apart[id] = incumbents.apart[id] or checksum ~= nil
    if not checksum and new[HELD] == BY_MANY then new[HELD] = nil end  -- a duplicate: it has nothing in the index
  end
  if not checksum then
    part(id, old, new, change.forget, change.keep)
    call("HDEL", P .. "document", id)
    new_texts[id] = nil
  elseif change.document then
    call("HSET", P .. "document", id, change.document)
    new_texts[id] = change.text
  end
  if change.forget then
    forget(id, old)
    return
  end
  local row = {}
  for place = 1, LAST do row[place] = new[place] end
  for _, place in ipairs({1, URL, KEY, SITE, PATH, HOST, FOUND}) do row[place] = old[place] end
  row[DEPTH] = math.min(old[DEPTH], new[DEPTH])
  row[LEASE], row[CHECKSUM], row[CANON] = nil, checksum, canon
  rows[id] = row
  touch(id)
  if change.links == "" then
    call("HDEL", P .. "links", id)
  elseif change.links then
    call("HSET", P .. "links", id, change.links)
  end
  if old[DEPTH] ~= new[DEPTH] then nearer[id] = nearer[id] or math.max(old[DEPTH], new[DEPTH]) end
  if row[STATE] == PENDING and not (old[STATE] == PENDING and not old[LEASE]) then count_pending(site_name(row[SITE])) end
end

-- What documents that may be left in the index are like, before anything changes.
local function keep_documents(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row then
      remember(id, row)
      if has_order(row[URL]) then kept_documents[id] = document_of(id) end
    end
  end
end

local function replied(lowered, pushes, deletes, due, displaced)
  flush()
  local pending = {}
  for site, count in pairs(effects.pending) do
    pending[#pending + 1] = site
    pending[#pending + 1] = count
  end
  local hastened = {}
  for _, one in ipairs(due) do
    local row = rows[one[1]]
    hastened[#hastened + 1] = {site_name(row[SITE]), queue_index_of(row), one[2]}
  end
  return {effects.discovered, pending, lowered, hastened, pushes, deletes, displaced or 0}
end

local function completed(state)
  for place in pairs(ZERO) do state[place] = state[place] or 0 end
  return state
end

-- `answered` has the numbers of sites of which a URL was held. Of sites that are not the worker's somebody else may know more.
local function write_health(health, worker, answered)
  for _, one in ipairs(health) do
    local site = worker and find_site(one[1])
    if not worker or (site and (answered[site] or holds(worker, site))) then call("HSET", P .. "health", one[1], one[2]) end
  end
end

function ops.discover(args)
  discover(args.urls, args.now)
  local lowered = carry()
  for _, new in ipairs(args.urls) do
    if new[10] then
      local id = id_of(new[2], new[1])
      call("HSETNX", P .. "inherited", id, new[10])
    end
  end
  return replied(lowered, 0, 0, {})
end

local function count_refused(refused)
  for _, one in ipairs(refused or {}) do call("HINCRBY", P .. "refusal", one[1], one[2]) end
end

function ops.count_refusals(args) count_refused(args.refused) end

function ops.record(args)
  local number, before
  if args.worker then number, before = caller(args) end
  if before then return before end
  for id, seen in pairs(args.expected or {}) do
    local row = get(id)
    if not row or encoded(row) ~= seen then return false end
  end
  local ids, kept = {}, {}
  for n, change in ipairs(args.changes) do
    ids[n] = change.id
    if change.keep or incumbents.is_held_apart(change.state) then kept[#kept + 1] = change.id end
  end
  prefetch(ids)
  keep_documents(kept)
  local discovered, pages, order, gone, answered = {}, {}, {}, {}, {}
  for _, change in ipairs(args.changes) do
    local id = change.id
    local is_held = get(id) and (not args.worker or (number and holders[id] == number))
    -- A worker that is alive goes by the rules of all, and takes for known what it has found once: that holds wherever it was found.
    if is_held or number then
      for _, new in ipairs(change.discovered or {}) do discovered[#discovered + 1] = new end
    end
    if is_held then
      local page = pages[id]
      if not page then
        page = {key = rows[id][KEY]}
        pages[id] = page
        order[#order + 1] = id
      end
      page.word, page.repeats = change.word or page.word, change.repeats
      page.rules, page.fetched_with = change.state[RULES] or 0, change.fetched_with
      if change.fields == "" then
        call("HDEL", P .. "fields", id)
      elseif change.fields then
        call("HSET", P .. "fields", id, change.fields)
      end
      completed(change.state)
      answered[rows[id][SITE]] = true
      apply(id, change)
      if change.forget then gone[id] = true end
    end
  end
  discover(discovered, args.now)
  local lowered = carry()
  local pushes, deletes, displaced = settle()
  local due = settle_handing(pages, order, gone, args.now)
  write_health(args.health, args.worker, answered)
  if number or not args.worker then count_refused(args.refused) end  -- of one that is no more, a repeated call is not known
  local reply = replied(lowered, pushes, deletes, due, displaced)
  return number and remembered(args, reply) or reply
end

local function copied(row)
  local copy = {}
  for place = 1, LAST do copy[place] = row[place] end
  return copy
end

local function as_excluded(row, status)
  local new = copied(row)
  new[STATE], new[STATUS], new[RETRIES], new[ERRORS], new[MARK] = EXCLUDED, status, 0, 0, 0
  for _, place in ipairs({NEXT, INTERVAL, LEASE, ETAG, MODIFIED, CHECKSUM, CANON, HELD, ASKED, FIELDS}) do new[place] = nil end
  return new
end

function ops.reclassify(args)
  for _, list in ipairs({args.excluded, args.given_up, args.unindexed}) do prefetch(list) end
  for _, list in ipairs({args.given_up, args.held, args.held_unindexed}) do keep_documents(list) end
  local function each(ids, make)
    for _, id in ipairs(ids) do
      local row = get(id)
      if row then make(id, row) end
    end
  end
  each(args.excluded, function(id, row) apply(id, {state = as_excluded(row, OUTSIDE)}) end)
  each(args.given_up, function(id, row) apply(id, {state = as_excluded(row, OUTSIDE_HERE), keep = true}) end)
  each(args.unindexed, function(id, row)
    local new = as_excluded(row, NOINDEX)
    new[NEXT], new[RULES] = args.now, 0
    apply(id, {state = new})
  end)
  for mark, ids in pairs({[0] = args.held, [1] = args.held_unindexed}) do
    prefetch(ids)
    each(ids, function(id, row)
      local new = copied(row)
      new[HELD], new[MARK], new[NEXT], new[RETRIES] = BY_RULES, mark, nil, 0
      apply(id, {state = new, keep = true})
    end)
  end
  prefetch(args.returned)
  each(args.returned, function(id, row)
    local new = copied(row)
    if row[STATUS] == OUTSIDE or row[STATUS] == OUTSIDE_HERE then
      new[STATE], new[STATUS], new[NEXT], new[INTERVAL], new[RULES] = PENDING, nil, nil, nil, 0
      new[HELD], new[MARK] = nil, 0
    elseif row[STATE] ~= PENDING then
      new[HELD], new[MARK], new[RULES], new[NEXT] = nil, 0, 0, args.now
    else
      return
    end
    apply(id, {state = new, keep = true})
  end)
  for _, move in ipairs(args.moved) do
    local row = get(move[1])
    if row then
      row[SOURCE], row[SHIFT] = move[2], move[3]
      touch(move[1])
    end
  end
  local pushes, deletes, displaced = settle()
  return replied({}, pushes, deletes, {}, displaced)
end
