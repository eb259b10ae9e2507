-- Groups of duplicates, see `duplicates.py`. A group is named by a checksum. The hash `checksum` has for each the number of URLs that have it,
-- and the members of its group: none, one id, or `*` for those in the sorted set `group:…`, whose members are written so that their
-- order is their rank. The hash `incumbent` has who stands for a group where that isn't the one with the best rank.

function groups.checksum_bucket(checksum)
  return string.format("%schecksum:%02x%02x", P, string.byte(checksum, 1) or 0, string.byte(checksum, 2) or 0)
end

function groups.entry_of(checksum)
  local entry = groups.entries[checksum]
  if not entry then
    local text = call("HGET", groups.checksum_bucket(checksum), checksum)
    local urls, members = string.match(text or "0:", "^(%d+):(.*)$")
    if not members or not (members == "" or members == "*" or string.match(members, "^%d+$")) then error("an entry of a group is damaged") end
    entry = {urls = tonumber(urls), members = members}
    groups.entries[checksum] = entry
  end
  return entry
end

function groups.group_key(group) return PREFIX.group .. group end

function groups.aside_then(id)
  if groups.asides[id] == nil then groups.asides[id] = call("HGET", keys.aside, id) end
  return groups.asides[id]
end

function groups.winner_of(id, row)
  if not row[CHECKSUM] then return nil end
  local group = groups.aside_then(id) or row[CHECKSUM]
  local members = groups.entry_of(group).members
  if members ~= "*" then return tonumber(members) end
  local incumbent = call("HGET", keys.incumbent, group)
  if incumbent then return tonumber(incumbent) end
  local first = call("ZRANGE", groups.group_key(group), 0, 0)[1]
  return first and tonumber(string.match(first, "^...........(%d+).$"))
end

-- Who stands for a group of pages of several hosts, where that isn't the one with the best rank.

function groups.member_key(group) return PREFIX.member .. group end  -- by id: its place in the group, and whom it names

-- Who stays although pages of other hosts have a better rank: see `standing` in `duplicates.py`. `placed` has by group the ids that got a place
-- in this call.
forget_after_call(function() incumbents.placed = {} end)
incumbents.NOTED = 100

function incumbents.id_of(place) return tonumber(string.match(place, "^...........(%d+).$")) end

function incumbents.host_of(id)
  local row = get(id)
  return row and cache.host_of(sites.name(row[SITE]))
end

-- The one of a host with the best rank. Passes over pages of other hosts with a better rank, of which there may be many.
function incumbents.first_of(group, host)
  local first = 0
  while true do
    local ids = call("ZRANGE", groups.group_key(group), first, first + incumbents.NOTED)
    if #ids == 0 then return nil end
    for n, place in ipairs(ids) do ids[n] = incumbents.id_of(place) end
    prefetch(ids)
    for _, id in ipairs(ids) do
      if incumbents.host_of(id) == host then return id end
    end
    first = first + #ids
  end
end

-- The same, where only those that got a place in this call may have a better one than this URL.
function incumbents.first_placed(group, host, id)
  local best = call("HGET", groups.member_key(group), id)
  for other in pairs(incumbents.placed[group] or {}) do
    local place = call("HGET", groups.member_key(group), other)
    if place and string.sub(place, 1, 25) < string.sub(best, 1, 25) and incumbents.host_of(other) == host then best = place end
  end
  return incumbents.id_of(string.sub(best, 1, 25))
end

-- Note who stands for a group, which `before` has stood for until now.
function incumbents.settle(group, before)
  local stays = nil
  if before and groups.entry_of(group).members == "*" then
    local first = incumbents.id_of(call("ZRANGE", groups.group_key(group), 0, 0)[1])
    local place = first ~= before and call("HGET", groups.member_key(group), before)
    if place and string.sub(place, 1, 1) == "0" then
      local host = incumbents.host_of(before)
      if incumbents.host_of(first) ~= host then
        local is_placed = (incumbents.placed[group] or {})[before]
        stays = is_placed and incumbents.first_of(group, host) or incumbents.first_placed(group, host, before)
      end
    end
  end
  if stays then
    call("HSET", keys.incumbent, group, stays)
  else
    call("HDEL", keys.incumbent, group)
  end
end

-- Who joins and leaves a group, and who stands for it then.

local was  -- by id: what a URL that changes was, before this call
forget_after_call(function()
  was = {}
  groups.entries, groups.changed_entries = {}, {}  -- by checksum
  groups.asides, groups.new_texts, groups.kept_documents, groups.taken_back = {}, {}, {}, {}  -- by id
  groups.left = {}  -- by id: what this call has set
  groups.left_group = {}  -- by id: whether a document leaves its group because its deletion is held, see `leaves_group` in `duplicates.py`
end)

function groups.remember(id, row)
  if was[id] == nil then
    was[id] = {
      checksum = row[CHECKSUM], canon = row[CANONICAL], key = row[KEY], url = row[URL], inherited = nil,
      site = row[SITE],
    }
  end
end

function groups.write_entries()
  for checksum in pairs(groups.changed_entries) do
    local entry = groups.entries[checksum]
    if entry.urls == 0 and entry.members == "" then
      call("HDEL", groups.checksum_bucket(checksum), checksum)
    else
      call("HSET", groups.checksum_bucket(checksum), checksum, entry.urls .. ":" .. entry.members)
    end
  end
  groups.changed_entries = {}
end

function groups.named_key(group) return PREFIX.named .. group end    -- by key: how many members name it

-- For which group a URL stands, and whether it stands aside there, by what is known of all URLs now.
function groups.group_now(id)
  local row = rows[id]
  if not row or not row[CHECKSUM] then return nil, false end
  if row[CANONICAL] then
    local page
    for _, other in ipairs(url_keys.rows_with(row[CANONICAL])) do
      if rows[other][CHECKSUM] and not rows[other][CANONICAL] and (not page or other < page) then page = other end
    end
    if page then return rows[page][CHECKSUM], true end
  end
  return row[CHECKSUM], false
end

-- The group a URL was in before this call.
function groups.group_then(id)
  local old, row = was[id], get(id)
  local checksum
  if old then checksum = old.checksum elseif row then checksum = row[CHECKSUM] end
  if not checksum then return nil, false end
  local aside = groups.aside_then(id)
  return aside or checksum, aside and true or false
end

function groups.standing(group)
  local members = groups.entry_of(group).members
  if members == "" then return {noted = {}} end
  if members ~= "*" then return {winner = tonumber(members), noted = {}} end
  local winner, noted, first = tonumber(call("HGET", keys.incumbent, group) or nil), {}, 0
  while #noted < incumbents.NOTED do
    local places = call("ZRANGE", groups.group_key(group), first, first + incumbents.NOTED)
    if #places == 0 then break end
    for _, place in ipairs(places) do
      local id, own = string.match(place, "^...........(%d+)(.)$")
      if not id then error("a place in a group is damaged") end
      if own == "1" and not winner then
        winner = tonumber(id)
      elseif own == "1" and tonumber(id) ~= winner and #noted < incumbents.NOTED then
        noted[#noted + 1] = tonumber(id)
      end
    end
    first = first + #places
  end
  return {winner = winner, noted = noted, shared = true}
end

-- Aside, named, rank, id: all of one width, so that the order of texts is that of numbers.
groups.HTTP = 500000000
function groups.place_in(group, id, aside)
  local row = rows[id]
  local rank = row[RANK]
  -- `with_scheme` in `duplicates.py`: earlier versions left the scheme out
  if rank < groups.HTTP and string.sub(row[URL], 1, 6) ~= "https:" then rank = rank + groups.HTTP end
  local named = call("HEXISTS", groups.named_key(group), row[KEY]) == 1
  return string.format(
    "%d%d%09.0f%013.0f%d", aside and 1 or 0, named and 0 or 1, rank, id, row[CHECKSUM] == group and 1 or 0
  )
end

-- `names` is the key that it names there.
function groups.put_member(group, id, aside, names)
  local old = call("HGET", groups.member_key(group), id)
  local place = groups.place_in(group, id, aside)
  incumbents.placed[group] = incumbents.placed[group] or {}
  incumbents.placed[group][id] = true
  if old and string.sub(old, 1, #place) ~= place then call("ZREM", groups.group_key(group), string.sub(old, 1, #place)) end
  call("ZADD", groups.group_key(group), 0, place)
  call("HSET", groups.member_key(group), id, place .. names)
  return place
end

-- Whoever in the group has that key goes before others, or no longer.
function groups.place_again(group, key)
  for _, id in ipairs(url_keys.rows_with(key)) do
    local old = call("HGET", groups.member_key(group), id)
    if old then groups.put_member(group, id, string.sub(old, 1, 1) == "1", string.sub(old, 26)) end  -- whom it names is counted where it leaves
  end
end

function groups.join_many(group, id, aside)
  local key = rows[id][CANONICAL]
  if key and call("HINCRBY", groups.named_key(group), key, 1) == 1 then groups.place_again(group, key) end
  groups.put_member(group, id, aside, key or "")
end

function groups.join(group, id, aside)
  local entry = groups.entry_of(group)
  groups.changed_entries[group] = true
  if entry.members == "" and not aside and not rows[id][CANONICAL] then
    entry.members = tostring(id)
    return
  end
  if entry.members ~= "*" then
    local first = tonumber(entry.members)
    entry.members = "*"
    if first and get(first) then groups.join_many(group, first, false) end  -- not one whose record was put aside
  end
  groups.join_many(group, id, aside)
end

function groups.leave(group, id)
  local entry = groups.entry_of(group)
  groups.changed_entries[group] = true
  if entry.members ~= "*" then
    entry.members = ""
    return
  end
  local old = call("HGET", groups.member_key(group), id)
  if not old then return end
  call("HDEL", groups.member_key(group), id)
  call("ZREM", groups.group_key(group), string.sub(old, 1, 25))
  local key = string.sub(old, 26)
  if key ~= "" and call("HINCRBY", groups.named_key(group), key, -1) == 0 then
    call("HDEL", groups.named_key(group), key)
    groups.place_again(group, key)
  end
  if call("ZCARD", groups.group_key(group)) == 0 then
    call("DEL", groups.member_key(group), groups.named_key(group))
    entry.members = ""
  end
end

function groups.same_noted(one, other)
  if #one ~= #other then return false end
  local seen = {}
  for _, id in ipairs(one) do seen[id] = true end
  for _, id in ipairs(other) do
    if not seen[id] then return false end
  end
  return true
end

function groups.sorted(set)
  local ids = {}
  for id in pairs(set) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

function groups.naming(one)
  return one and one.checksum and one.canon or nil
end

function groups.as_page(one)
  return one and one.checksum and not one.canon and one.checksum or nil
end

-- Those whose group, or place in it, may be another one now; and the index of who names whom brought up to date.
function groups.concerned()
  local dirty = {}
  for id, old in pairs(was) do
    dirty[id] = true
    local row = rows[id]
    local now = row and {checksum = row[CHECKSUM], canon = row[CANONICAL]} or nil
    local before, after = groups.naming(old), groups.naming(now)
    if before ~= after then
      if before then later("SREM", PREFIX.names .. before, id) end
      if after then later("SADD", PREFIX.names .. after, id) end
    end
    if (old.checksum or false) ~= (now and now.checksum or false) then
      if old.checksum then
        local entry = groups.entry_of(old.checksum)
        entry.urls = entry.urls - 1
        groups.changed_entries[old.checksum] = true
      end
      if now and now.checksum then
        local entry = groups.entry_of(now.checksum)
        entry.urls = entry.urls + 1
        groups.changed_entries[now.checksum] = true
      end
    end
  end
  for id, old in pairs(was) do
    local row = rows[id]
    if groups.as_page(old) ~= groups.as_page(row and {checksum = row[CHECKSUM], canon = row[CANONICAL]} or nil) then
      for _, follower in ipairs(call("SMEMBERS", PREFIX.names .. old.key)) do dirty[tonumber(follower)] = true end
    end
  end
  return groups.sorted(dirty)
end

function groups.has_order(url)
  for _, sink in ipairs(SINKS) do
    if call("HEXISTS", outbox.key(sink, "url"), url) == 1 then return true end
  end
  return false
end

-- Remove the texts that are not needed any more: those of pages that are alone in their group and have been sent to the index.
function groups.drop_texts(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and row[CHECKSUM] and not row[CANONICAL] and not groups.has_order(row[URL]) and groups.entry_of(row[CHECKSUM]).urls == 1 then
      call("HDEL", keys.text, row[CHECKSUM])
    end
  end
end

function groups.keep_texts(old_checksums)
  for _, id in ipairs(groups.sorted(groups.new_texts)) do
    local row = rows[id]
    if row and row[CHECKSUM] and (groups.winner_of(id, row) == id or call("HEXISTS", keys.text, row[CHECKSUM]) == 0) then
      call("HSET", keys.text, row[CHECKSUM], groups.new_texts[id])
    end
  end
  for checksum in pairs(old_checksums) do
    if groups.entry_of(checksum).urls == 0 then call("HDEL", keys.text, checksum) end
  end
end

-- What is pushed for a URL, as it is now: the document, its text and the URLs of its duplicates; nothing where it has none.
-- The URLs that are noted on the document of a URL.
function groups.noted_of(id, row)
  local noted = groups.standing(groups.aside_then(id) or row[CHECKSUM]).noted
  prefetch(noted)
  local urls = {}
  for _, other in ipairs(noted) do
    if rows[other] then urls[#urls + 1] = rows[other][URL] end
  end
  return urls
end

function groups.document_of(id)
  local row = get(id)
  local document = row and row[CHECKSUM] and call("HGET", keys.document, id)
  local text = document and call("HGET", keys.text, row[CHECKSUM])
  if not text then return nil end
  return {row[URL], document, text, unpack(groups.noted_of(id, row))}
end

function groups.is_left_in_index(id)
  if groups.left[id] ~= nil then return groups.left[id] end
  return call("SISMEMBER", keys.left, id) == 1
end

function groups.leave_in_index(id, stays_in_index)
  groups.left[id] = stays_in_index
  later(stays_in_index and "SADD" or "SREM", keys.left, id)
end

-- Note whether the index keeps the document of a URL that has none any more.
function groups.part(id, old, change)
  local keep_in_index, forget = change.keep, change.forget
  local left = groups.is_left_in_index(id)
  if old[CHECKSUM] and keep_in_index and not forget then
    local then_ = was[id].checksum and groups.winner_of(id, {[CHECKSUM] = was[id].checksum})
    if then_ == id or left or groups.taken_back[id] then
      groups.leave_in_index(id, true)
      groups.taken_back[id] = nil
    end
  elseif left and (forget or not (keep_in_index or change.stays)) then
    groups.leave_in_index(id, false)
    groups.taken_back[id] = true
  end
end

-- Raise an error where something that is going to be read below is damaged: nothing has been written until here.
function groups.check(before, moves)
  local leaving, winning = {}, {}  -- by group: how many; sites
  for _, move in ipairs(moves) do
    local id, from, to = move[1], move[2], move[3]
    if from then leaving[from] = (leaving[from] or 0) + 1 end
    local old = from and call("HGET", groups.member_key(from), id)
    if old then groups.check_count(groups.named_key(from), string.sub(old, 26)) end
    if to and rows[id][CANONICAL] then groups.check_count(groups.named_key(to), rows[id][CANONICAL]) end
  end
  for group, now in pairs(before) do
    local ids = {now.winner}
    for n = 1, math.min(leaving[group] or 0, #now.noted) do ids[#ids + 1] = now.noted[n] end  -- one of them may stand for it next
    for _, id in ipairs(ids) do
      if now.shared then incumbents.host_of(id) end
      local row = get(id)
      if row then winning[row[SITE]] = true end
    end
  end
  cache.check_counters("documents", cache.keys(winning))
  cache.check()
end

function groups.check_count(key, field)
  local count = call("HGET", key, field)
  if count and not string.match(count, "^%d+$") then error("a count of a group is not an integer") end
end

-- Have the groups follow all changes; give the orders that make the index follow.
function groups.settle()
  local dirty = groups.concerned()
  local before, moves, checksums = {}, {}, {}
  local function remember_standing(group)
    if group and not before[group] then before[group] = groups.standing(group) end
  end
  prefetch(dirty)
  for _, id in ipairs(dirty) do
    local old, row = was[id], rows[id]
    local from, from_aside = groups.group_then(id)
    local to, to_aside = groups.group_now(id)
    remember_standing(from)
    remember_standing(to)
    local same = from == to and from_aside == to_aside
    if same and old and row then
      same = old.canon == row[CANONICAL] and old.checksum == row[CHECKSUM]
    end
    if not same then moves[#moves + 1] = {id, from, to, to_aside} end
    if old and old.checksum then checksums[old.checksum] = true end
  end
  groups.check(before, moves)
  for _, move in ipairs(moves) do
    if move[2] then groups.leave(move[2], move[1]) end
  end
  for _, move in ipairs(moves) do
    local id, to, aside = move[1], move[3], move[4]
    if aside then
      call("HSET", keys.aside, id, to)
      groups.asides[id] = to
    elseif groups.aside_then(id) then
      call("HDEL", keys.aside, id)
      groups.asides[id] = false
    end
    if to then groups.join(to, id, aside) end
  end
  local pushes, deletes, wins, won, winners, displaced = {}, {}, {}, {}, 0, 0
  for group, old in pairs(before) do
    if old.shared or groups.entry_of(group).members == "*" then incumbents.settle(group, old.winner) end
    local now = groups.standing(group)
    if old.winner then
      won[old.winner] = true
      winners = winners - 1
    end
    if now.winner then
      wins[now.winner] = true
      winners = winners + 1
      if now.winner ~= old.winner or groups.new_texts[now.winner] or not groups.same_noted(now.noted, old.noted) then pushes[now.winner] = true end
    end
  end
  if winners ~= 0 then call("HINCRBY", keys.counters, "indexed", winners) end
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
    if by ~= 0 then call("HINCRBY", keys.documents, site, by) end
  end
  for id in pairs(was) do
    local row = rows[id]
    if row and row[CHECKSUM] and groups.is_left_in_index(id) then
      groups.leave_in_index(id, false)
      groups.taken_back[id] = true
    end
  end
  for id in pairs(won) do
    local row = get(id)
    if not wins[id] and not groups.is_left_in_index(id) and (was[id] or row) then
      deletes[id] = true
      if row and row[CHECKSUM] then displaced = displaced + 1 end
    end
  end
  for id in pairs(groups.taken_back) do
    local row = get(id)
    if not row or groups.winner_of(id, row) ~= id then deletes[id] = true end
  end
  groups.keep_texts(checksums)
  for id, document in pairs(groups.kept_documents) do
    if groups.left_group[id] or groups.is_left_in_index(id) then outbox.keep_orders(was[id].url, document) end
  end
  for id in pairs(pushes) do  -- a held document that has left its group stays in the index as it is
    local row = get(id)  -- none where the record was put aside
    if not row or (not groups.new_texts[id] and call("HEXISTS", keys.text, row[CHECKSUM]) == 0) then pushes[id] = nil end
  end
  groups.write_entries()
  local push_ids, delete_ids = groups.sorted(pushes), groups.sorted(deletes)
  prefetch(push_ids)
  prefetch(delete_ids)
  for _, id in ipairs(delete_ids) do outbox.give(1, id, was[id] and was[id].url or rows[id][URL]) end
  for _, id in ipairs(push_ids) do outbox.give(0, id, was[id] and was[id].url or rows[id][URL]) end
  groups.drop_texts(push_ids)
  return #push_ids, #delete_ids, displaced
end
