-- Who joins and leaves a group, and who stands for it then.

local was = {}        -- by id: what a URL that changes was, before this call
local new_texts = {}  -- by id
local taken_back = {}
local kept_documents = {}

local function remember(id, row)
  if was[id] == nil then
    was[id] = {
      checksum = row[CHECKSUM], canon = row[CANON], key = row[KEY], url = row[URL], redirects = row[REDIRECTS], inherited = nil,
      site = row[SITE],
    }
  end
end

local changed_entries = {}
local function write_entries()
  for checksum in pairs(changed_entries) do
    local entry = entries[checksum]
    if entry.urls == 0 and entry.members == "" then
      call("HDEL", checksum_bucket(checksum), checksum)
    else
      call("HSET", checksum_bucket(checksum), checksum, entry.urls .. ":" .. entry.members)
    end
  end
  changed_entries = {}
end

local function named_key(group) return P .. "named:" .. group end    -- by key: how many members name it

-- For which group a URL stands, and whether it stands aside there, by what is known of all URLs now.
local function group_now(id)
  local row = rows[id]
  if not row or not row[CHECKSUM] then return nil, false end
  if row[CANON] then
    local page
    for _, other in ipairs(rows_with(row[CANON])) do
      if rows[other][CHECKSUM] and not rows[other][CANON] and (not page or other < page) then page = other end
    end
    if page then return rows[page][CHECKSUM], true end
  end
  return row[CHECKSUM], false
end

-- The group a URL was in before this call.
local function group_then(id)
  local old, row = was[id], get(id)
  local checksum
  if old then checksum = old.checksum elseif row then checksum = row[CHECKSUM] end
  if not checksum then return nil, false end
  local aside = aside_then(id)
  return aside or checksum, aside and true or false
end

local function standing(group)
  local members = entry_of(group).members
  if members == "" then return {noted = {}} end
  if members ~= "*" then return {winner = tonumber(members), noted = {}} end
  local winner, noted, first = tonumber(call("HGET", P .. "incumbent", group) or nil), {}, 0
  while #noted < NOTED do
    local places = call("ZRANGE", group_key(group), first, first + NOTED)
    if #places == 0 then break end
    for _, place in ipairs(places) do
      local id, own = string.match(place, "^...........(%d+)(.)$")
      if own == "1" and not winner then
        winner = tonumber(id)
      elseif own == "1" and tonumber(id) ~= winner and #noted < NOTED then
        noted[#noted + 1] = tonumber(id)
      end
    end
    first = first + #places
  end
  return {winner = winner, noted = noted, shared = true}
end

local join, leave
do  -- names of their own: a program has no more than 200

-- Aside, named, redirects, length of the path, id: all of one width, so that the order of texts is that of numbers.
local function place_in(group, id, aside)
  local row = rows[id]
  local named = call("HEXISTS", named_key(group), row[KEY]) == 1
  return string.format(
    "%d%d%03d%06d%013.0f%d", aside and 1 or 0, named and 0 or 1, math.min(row[REDIRECTS], 999), math.min(row[PATH], 999999), id,
    row[CHECKSUM] == group and 1 or 0
  )
end

-- `names` is the key that it names there.
local function put_member(group, id, aside, names)
  local old = call("HGET", member_key(group), id)
  local place = place_in(group, id, aside)
  incumbents.placed[group] = incumbents.placed[group] or {}
  incumbents.placed[group][id] = true
  if old and string.sub(old, 1, #place) ~= place then call("ZREM", group_key(group), string.sub(old, 1, #place)) end
  call("ZADD", group_key(group), 0, place)
  call("HSET", member_key(group), id, place .. names)
  return place
end

-- Whoever in the group has that key goes before others, or no longer.
local function place_anew(group, key)
  for _, id in ipairs(rows_with(key)) do
    local old = call("HGET", member_key(group), id)
    if old then put_member(group, id, string.sub(old, 1, 1) == "1", string.sub(old, 26)) end  -- whom it names is counted where it leaves
  end
end

local function join_many(group, id, aside)
  local key = rows[id][CANON]
  if key and call("HINCRBY", named_key(group), key, 1) == 1 then place_anew(group, key) end
  put_member(group, id, aside, key or "")
end

function join(group, id, aside)
  local entry = entry_of(group)
  changed_entries[group] = true
  if entry.members == "" and not aside and not rows[id][CANON] then
    entry.members = tostring(id)
    return
  end
  if entry.members ~= "*" then
    local first = tonumber(entry.members)
    entry.members = "*"
    if first and get(first) then join_many(group, first, false) end  -- not one whose record was put aside
  end
  join_many(group, id, aside)
end

function leave(group, id)
  local entry = entry_of(group)
  changed_entries[group] = true
  if entry.members ~= "*" then
    entry.members = ""
    return
  end
  local old = call("HGET", member_key(group), id)
  if not old then return end
  call("HDEL", member_key(group), id)
  call("ZREM", group_key(group), string.sub(old, 1, 25))
  local key = string.sub(old, 26)
  if key ~= "" and call("HINCRBY", named_key(group), key, -1) == 0 then
    call("HDEL", named_key(group), key)
    place_anew(group, key)
  end
  if call("ZCARD", group_key(group)) == 0 then
    call("DEL", member_key(group), named_key(group))
    entry.members = ""
  end
end

end

local function same_noted(one, other)
  if #one ~= #other then return false end
  local seen = {}
  for _, id in ipairs(one) do seen[id] = true end
  for _, id in ipairs(other) do
    if not seen[id] then return false end
  end
  return true
end

local function sorted(set)
  local ids = {}
  for id in pairs(set) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

local function naming(one)
  return one and one.checksum and one.canon or nil
end

local function as_page(one)
  return one and one.checksum and not one.canon and one.checksum or nil
end

-- Those whose group, or place in it, may be another one now; and the index of who names whom brought up to date.
local function concerned()
  local dirty = {}
  for id, old in pairs(was) do
    dirty[id] = true
    local row = rows[id]
    local now = row and {checksum = row[CHECKSUM], canon = row[CANON]} or nil
    local before, after = naming(old), naming(now)
    if before ~= after then
      if before then call("SREM", P .. "names:" .. before, id) end
      if after then call("SADD", P .. "names:" .. after, id) end
    end
    if (old.checksum or false) ~= (now and now.checksum or false) then
      if old.checksum then
        local entry = entry_of(old.checksum)
        entry.urls = entry.urls - 1
        changed_entries[old.checksum] = true
      end
      if now and now.checksum then
        local entry = entry_of(now.checksum)
        entry.urls = entry.urls + 1
        changed_entries[now.checksum] = true
      end
    end
  end
  for id, old in pairs(was) do
    local row = rows[id]
    if as_page(old) ~= as_page(row and {checksum = row[CHECKSUM], canon = row[CANON]} or nil) then
      for _, follower in ipairs(call("SMEMBERS", P .. "names:" .. old.key)) do dirty[tonumber(follower)] = true end
    end
  end
  return sorted(dirty)
end

local function has_order(url)
  for _, sink in ipairs(SINKS) do
    if call("HEXISTS", P .. "out:" .. sink .. ":url", url) == 1 then return true end
  end
  return false
end

-- Let go of the texts that nothing will ever need: those of lone pages that stand aside for nobody and have been sent.
local function drop_texts(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and row[CHECKSUM] and not row[CANON] and not has_order(row[URL]) and entry_of(row[CHECKSUM]).urls == 1 then
      call("HDEL", P .. "text", row[CHECKSUM])
    end
  end
end

local function keep_texts(old_checksums)
  for _, id in ipairs(sorted(new_texts)) do
    local row = rows[id]
    if row and row[CHECKSUM] and (winner_of(id, row) == id or call("HEXISTS", P .. "text", row[CHECKSUM]) == 0) then
      call("HSET", P .. "text", row[CHECKSUM], new_texts[id])
    end
  end
  for checksum in pairs(old_checksums) do
    if entry_of(checksum).urls == 0 then call("HDEL", P .. "text", checksum) end
  end
end

-- What is pushed for a URL, as it is now: the document, its text and the URLs of its duplicates; nothing where it has none.
local function document_of(id)
  local row = get(id)
  local document = row and row[CHECKSUM] and call("HGET", P .. "document", id)
  local text = document and call("HGET", P .. "text", row[CHECKSUM])
  if not text then return nil end
  local noted = standing(aside_then(id) or row[CHECKSUM]).noted
  prefetch(noted)
  local urls = {}
  for _, other in ipairs(noted) do
    if rows[other] then urls[#urls + 1] = rows[other][URL] end
  end
  return {row[URL], document, text, unpack(urls)}
end

local function is_left_in_index(id) return call("SISMEMBER", P .. "left", id) == 1 end

local function is_silent(row)
  local status = row[STATUS]
  return row[HELD] or (row[STATE] == GONE and status and status >= 500) or row[STATE] == PENDING or row[STATE] == FAILED or status == OUTSIDE_HERE
end

-- Note whether the index keeps the document of a URL that has none any more; `row` is as it becomes.
local function part(id, old, row, forget, keep_in_index)
  local left = is_left_in_index(id)
  if old[CHECKSUM] and keep_in_index and not forget then
    local then_ = was[id].checksum and winner_of(id, {[CHECKSUM] = was[id].checksum})
    if then_ == id or left or taken_back[id] then
      call("SADD", P .. "left", id)
      taken_back[id] = nil
    end
  elseif left and (forget or not (keep_in_index or is_silent(row))) then
    call("SREM", P .. "left", id)
    taken_back[id] = true
  end
end

-- Have the groups follow all changes; give the orders that make the index follow.
local function settle()
  local dirty = concerned()
  local before, moves, checksums = {}, {}, {}
  local function look(group)
    if group and not before[group] then before[group] = standing(group) end
  end
  prefetch(dirty)
  for _, id in ipairs(dirty) do
    local old, row = was[id], rows[id]
    local from, from_aside = group_then(id)
    local to, to_aside = group_now(id)
    look(from)
    look(to)
    local same = from == to and from_aside == to_aside
    if same and old and row then
      same = old.canon == row[CANON] and old.redirects == row[REDIRECTS] and old.checksum == row[CHECKSUM]
    end
    if not same then moves[#moves + 1] = {id, from, to, to_aside} end
    if old and old.checksum then checksums[old.checksum] = true end
  end
  for _, move in ipairs(moves) do
    if move[2] then leave(move[2], move[1]) end
  end
  for _, move in ipairs(moves) do
    local id, to, aside = move[1], move[3], move[4]
    if aside then
      call("HSET", P .. "aside", id, to)
      asides[id] = to
    elseif aside_then(id) then
      call("HDEL", P .. "aside", id)
      asides[id] = false
    end
    if to then join(to, id, aside) end
  end
  local pushes, deletes, wins, won, winners, displaced = {}, {}, {}, {}, 0, 0
  for group, old in pairs(before) do
    if old.shared or entry_of(group).members == "*" then incumbents.settle(group, old.winner) end
    local now = standing(group)
    if old.winner then
      won[old.winner] = true
      winners = winners - 1
    end
    if now.winner then
      wins[now.winner] = true
      winners = winners + 1
      if now.winner ~= old.winner or new_texts[now.winner] or not same_noted(now.noted, old.noted) then pushes[now.winner] = true end
    end
  end
  if winners ~= 0 then call("HINCRBY", P .. "n", "indexed", winners) end
  local by_site = {}  -- documents in the index
  for sign, ids in pairs({[-1] = won, [1] = wins}) do
    local both = sign == 1 and won or wins
    for id in pairs(ids) do
      local one = was[id] or get(id)  -- neither where the record was put aside
      if not both[id] and one then
        local site = was[id] and one.site or one[SITE]
        by_site[site] = (by_site[site] or 0) + sign
      end
    end
  end
  for site, by in pairs(by_site) do
    if by ~= 0 then call("HINCRBY", P .. "documents", site, by) end
  end
  for id in pairs(was) do
    local row = rows[id]
    if row and row[CHECKSUM] and is_left_in_index(id) then
      call("SREM", P .. "left", id)
      taken_back[id] = true
    end
  end
  for id in pairs(won) do
    local row = get(id)
    if not wins[id] and not is_left_in_index(id) and (was[id] or row) then
      deletes[id] = true
      if row and row[CHECKSUM] then displaced = displaced + 1 end
    end
  end
  for id in pairs(taken_back) do
    local row = get(id)
    if not row or winner_of(id, row) ~= id then deletes[id] = true end
  end
  keep_texts(checksums)
  for id, document in pairs(kept_documents) do
    if incumbents.apart[id] or is_left_in_index(id) then keep_orders(was[id].url, document) end
  end
  for id in pairs(pushes) do  -- one that is held apart is in the index as it is
    if not new_texts[id] and call("HEXISTS", P .. "text", get(id)[CHECKSUM]) == 0 then pushes[id] = nil end
  end
  write_entries()
  local push_ids, delete_ids = sorted(pushes), sorted(deletes)
  prefetch(push_ids)
  prefetch(delete_ids)
  for _, id in ipairs(delete_ids) do give(1, id, was[id] and was[id].url or rows[id][URL]) end
  for _, id in ipairs(push_ids) do give(0, id, was[id] and was[id].url or rows[id][URL]) end
  drop_texts(push_ids)
  return #push_ids, #delete_ids, displaced
end
