-- Groups of duplicates, see `duplicates.py`. A group is named by a checksum. The hash `checksum` has for each the number of URLs that have it,
-- and the members of its group: none, one id, or `*` for those in the sorted set `group:…`, whose members are written so that their
-- order is their rank. The hash `representative` has the representative of a group where that isn't the one with the best rank.

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

function groups.alternate_before(id)
  if groups.alternates[id] == nil then groups.alternates[id] = call("HGET", keys.alternate, id) end
  return groups.alternates[id]
end

function groups.representative_of(id, row)
  if not row[CHECKSUM] then return nil end
  local group = groups.alternate_before(id) or row[CHECKSUM]
  local members = groups.entry_of(group).members
  if members ~= "*" then return tonumber(members) end
  local representative = call("HGET", keys.representative, group)
  if representative then return tonumber(representative) end
  local first = call("ZRANGE", groups.group_key(group), 0, 0)[1]
  return first and tonumber(string.match(first, "^...........(%d+).$"))
end

-- The representative of a group of pages of several hosts, where that isn't the one with the best rank.

function groups.member_key(group) return PREFIX.member .. group end  -- by id: its rank in the group, and the page that it names

-- The representative that stays although pages of other hosts have a better rank: see `rank_members` in `duplicates.py`. `ranked` has by group
-- the ids that got a rank in this call.
forget_after_call(function() representatives.ranked = {} end)
representatives.NOTED = 100

function representatives.id_of(member) return tonumber(string.match(member, "^...........(%d+).$")) end

function representatives.host_of(id)
  local row = get(id)
  return row and cache.host_of(sites.name(row[SITE]))
end

-- The member of a host with the best rank. Skips pages of other hosts with a better rank, of which there may be many.
function representatives.first_of(group, host)
  local first = 0
  while true do
    local ids = call("ZRANGE", groups.group_key(group), first, first + representatives.NOTED)
    if #ids == 0 then return nil end
    for n, member in ipairs(ids) do ids[n] = representatives.id_of(member) end
    prefetch(ids)
    for _, id in ipairs(ids) do
      if representatives.host_of(id) == host then return id end
    end
    first = first + #ids
  end
end

-- The same, where only those that got a rank in this call may have a better one than this URL.
function representatives.first_ranked(group, host, id)
  local best = call("HGET", groups.member_key(group), id)
  for other in pairs(representatives.ranked[group] or {}) do
    local member = call("HGET", groups.member_key(group), other)
    if member and string.sub(member, 1, 25) < string.sub(best, 1, 25) and representatives.host_of(other) == host then best = member end
  end
  return representatives.id_of(string.sub(best, 1, 25))
end

-- Store the representative of a group, where `before` was it until now.
function representatives.settle(group, before)
  local stays = nil
  if before and groups.entry_of(group).members == "*" then
    local first = representatives.id_of(call("ZRANGE", groups.group_key(group), 0, 0)[1])
    local member = first ~= before and call("HGET", groups.member_key(group), before)
    if member and string.sub(member, 1, 1) == "0" then
      local host = representatives.host_of(before)
      if representatives.host_of(first) ~= host then
        local is_ranked = (representatives.ranked[group] or {})[before]
        stays = is_ranked and representatives.first_of(group, host) or representatives.first_ranked(group, host, before)
      end
    end
  end
  if stays then
    call("HSET", keys.representative, group, stays)
  else
    call("HDEL", keys.representative, group)
  end
end

-- Joining and leaving groups, and their representatives then.

local was  -- by id: a changed URL before this call
forget_after_call(function()
  was = {}
  groups.entries, groups.changed_entries = {}, {}  -- by checksum
  groups.alternates, groups.new_texts, groups.kept_documents, groups.taken_back = {}, {}, {}, {}  -- by id
  groups.left = {}  -- by id: values set by this call
  groups.left_group = {}  -- by id: whether a document leaves its group because its deletion is held, see `leaves_group` in `duplicates.py`
end)

function groups.remember(id, row)
  if was[id] == nil then
    was[id] = {
      checksum = row[CHECKSUM], canon = row[CANONICAL], key = row[KEY], url = row[URL], inherited = nil,
      site = row[SITE], simhash = row[SIMHASH],
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

-- The id of the canonical page with a key, as `canonical_page`.
function groups.canonical_page(key)
  local page
  for _, other in ipairs(url_keys.rows_with(key)) do
    if rows[other][CHECKSUM] and not rows[other][CANONICAL] and (not page or other < page) then page = other end
  end
  return page
end

-- The group of a URL, whether it is an alternate there, and whether as a near duplicate, by what is known of all URLs now.
function groups.group_now(id)
  local row = rows[id]
  if not row or not row[CHECKSUM] then return nil, false, false end
  local page = row[CANONICAL] and groups.canonical_page(row[CANONICAL])
  if page then return groups.group_of_page(page), true, false end
  local group = groups.group_of_page(id)
  return group, group ~= row[CHECKSUM], group ~= row[CHECKSUM]
end

-- The group of a page that is no alternate of a canonical page: a near duplicate stays in its group until its own record has another text, or no
-- signature.
function groups.group_of_page(id)
  local row, old = rows[id], was[id]
  local stays = not old or (row[SIMHASH] and old.checksum == row[CHECKSUM])
  return stays and near.of(id) or row[CHECKSUM]
end

function groups.each_changed(take)
  for id in pairs(was) do take(id) end
end

-- The group a URL was in before this call.
function groups.group_before(id)
  local old, row = was[id], get(id)
  local checksum
  if old then checksum = old.checksum elseif row then checksum = row[CHECKSUM] end
  if not checksum then return nil, false end
  local alternate = groups.alternate_before(id)
  return alternate or checksum, alternate and true or false
end

function groups.ranking(group)
  local members = groups.entry_of(group).members
  if members == "" then return {noted = {}} end
  if members ~= "*" then return {representative = tonumber(members), noted = {}} end
  local representative, noted, first = tonumber(call("HGET", keys.representative, group) or nil), {}, 0
  while #noted < representatives.NOTED do
    local entries = call("ZRANGE", groups.group_key(group), first, first + representatives.NOTED)
    if #entries == 0 then break end
    for _, member in ipairs(entries) do
      local id, own = string.match(member, "^...........(%d+)(.)$")
      if not id then error("a member of a group is damaged") end
      if own == "1" and not representative then
        representative = tonumber(id)
      elseif own == "1" and tonumber(id) ~= representative and #noted < representatives.NOTED then
        noted[#noted + 1] = tonumber(id)
      end
    end
    first = first + #entries
  end
  return {representative = representative, noted = noted, shared = true}
end

-- Alternate, named, rank, id: all of one width, so that the order of texts is that of numbers.
groups.HTTP = 500000000
function groups.rank_in(group, id, alternate)
  local row = rows[id]
  local rank = row[RANK]
  -- `with_scheme` in `duplicates.py`: earlier versions left the scheme out
  if rank < groups.HTTP and string.sub(row[URL], 1, 6) ~= "https:" then rank = rank + groups.HTTP end
  local named = call("HEXISTS", groups.named_key(group), row[KEY]) == 1
  return string.format(
    "%d%d%09.0f%013.0f%d", alternate and 1 or 0, named and 0 or 1, rank, id, (row[CHECKSUM] == group or near.of(id) == group) and 1 or 0
  )
end

-- `names` is the key that it names there.
function groups.put_member(group, id, alternate, names)
  local old = call("HGET", groups.member_key(group), id)
  local member = groups.rank_in(group, id, alternate)
  representatives.ranked[group] = representatives.ranked[group] or {}
  representatives.ranked[group][id] = true
  if old and string.sub(old, 1, #member) ~= member then call("ZREM", groups.group_key(group), string.sub(old, 1, #member)) end
  call("ZADD", groups.group_key(group), 0, member)
  call("HSET", groups.member_key(group), id, member .. names)
  return member
end

-- Rank the members with that key again: they come before others while a page names them.
function groups.rank_again(group, key)
  for _, id in ipairs(url_keys.rows_with(key)) do
    local old = call("HGET", groups.member_key(group), id)
    if old then groups.put_member(group, id, string.sub(old, 1, 1) == "1", string.sub(old, 26)) end  -- the page that it names is counted where it leaves
  end
end

function groups.join_many(group, id, alternate)
  local key = rows[id][CANONICAL]
  if key and call("HINCRBY", groups.named_key(group), key, 1) == 1 then groups.rank_again(group, key) end
  groups.put_member(group, id, alternate, key or "")
end

function groups.join(group, id, alternate)
  local entry = groups.entry_of(group)
  groups.changed_entries[group] = true
  if entry.members == "" and not alternate and not rows[id][CANONICAL] then
    entry.members = tostring(id)
    return
  end
  if entry.members ~= "*" then
    local first = tonumber(entry.members)
    entry.members = "*"
    if first and get(first) then groups.join_many(group, first, false) end  -- not one whose record is quarantined
  end
  groups.join_many(group, id, alternate)
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
    groups.rank_again(group, key)
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

-- The URLs whose group or rank may have changed; updates the index of canonical pages.
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

-- Remove unneeded texts: those of pages that are alone in their group and have been sent to the index. One that may get near duplicates is kept:
-- they don't bring it.
function groups.drop_texts(ids)
  for _, id in ipairs(ids) do
    local row = get(id)
    if row and row[CHECKSUM] and not row[CANONICAL] and not row[SIMHASH] and not groups.has_order(row[URL]) and groups.entry_of(row[CHECKSUM]).urls == 1 then
      call("HDEL", keys.text, row[CHECKSUM])
    end
  end
end

function groups.keep_texts(old_checksums)
  for _, id in ipairs(groups.sorted(groups.new_texts)) do
    local row = rows[id]
    local checksum = row and row[CHECKSUM]
    if checksum and (groups.representative_of(id, row) == id or groups.entry_of(checksum).urls == 1 or call("HEXISTS", keys.text, checksum) == 0) then
      call("HSET", keys.text, checksum, groups.new_texts[id])
    end
  end
  for checksum in pairs(old_checksums) do
    if groups.entry_of(checksum).urls == 0 then call("HDEL", keys.text, checksum) end
  end
end

-- The document to push for a URL: the document, its text and the URLs of its duplicates; nothing without one.
-- The URLs that are noted on the document of a URL.
function groups.noted_of(id, row)
  local noted = groups.ranking(groups.alternate_before(id) or row[CHECKSUM]).noted
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

-- Note whether the index keeps the document of a URL without one.
function groups.part(id, old, change)
  local keep_in_index, forget = change.keep, change.forget
  local left = groups.is_left_in_index(id)
  if old[CHECKSUM] and keep_in_index and not forget then
    local then_ = was[id].checksum and groups.representative_of(id, {[CHECKSUM] = was[id].checksum})
    if then_ == id or left or groups.taken_back[id] then
      groups.leave_in_index(id, true)
      groups.taken_back[id] = nil
    end
  elseif left and (forget or not (keep_in_index or change.stays)) then
    groups.leave_in_index(id, false)
    groups.taken_back[id] = true
  end
end

-- Raise an error if data that is read below is damaged: nothing has been written until here.
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
    local ids = {now.representative}
    for n = 1, math.min(leaving[group] or 0, #now.noted) do ids[#ids + 1] = now.noted[n] end  -- one of them may be the next representative
    for _, id in ipairs(ids) do
      if now.shared then representatives.host_of(id) end
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

-- Update the groups after all changes, and give the orders that update the index.
function groups.settle()
  local dirty = groups.concerned()
  local before, moves, checksums, may_be_near = {}, {}, {}, call("EXISTS", keys.near_text) == 1
  local function remember_ranking(group)
    if group and not before[group] then before[group] = groups.ranking(group) end
  end
  prefetch(dirty)
  local changed = {}
  for _, id in ipairs(dirty) do
    local old, row = was[id], rows[id]
    local from, from_alternate = groups.group_before(id)
    local to, to_alternate, is_near = groups.group_now(id)
    remember_ranking(from)
    remember_ranking(to)
    local same = from == to and from_alternate == to_alternate and is_near == (near.of(id) ~= nil)
    if same and old and row then
      same = old.canon == row[CANONICAL] and old.checksum == row[CHECKSUM]
    end
    if not same then moves[#moves + 1] = {id, from, to, to_alternate, is_near} end
    if row and row[SIMHASH] then may_be_near = true end
    if not same or (old and row and old.simhash ~= row[SIMHASH]) then changed[#changed + 1] = id end
    if old and old.checksum then checksums[old.checksum] = true end
  end
  groups.check(before, moves)
  for _, move in ipairs(moves) do
    if move[2] then groups.leave(move[2], move[1]) end
    if near.of(move[1]) and not move[5] then near.leave(move[1], was[move[1]] and was[move[1]].checksum or rows[move[1]][CHECKSUM]) end
  end
  for _, move in ipairs(moves) do
    local id, to, alternate = move[1], move[3], move[4]
    if alternate then
      call("HSET", keys.alternate, id, to)
      groups.alternates[id] = to
    elseif groups.alternate_before(id) then
      call("HDEL", keys.alternate, id)
      groups.alternates[id] = false
    end
    if to then groups.join(to, id, alternate) end
  end
  if may_be_near then near.regroup(changed, before, remember_ranking) end
  local pushes, deletes, now_represents, represented, indexed, displaced = {}, {}, {}, {}, 0, 0
  for group, old in pairs(before) do
    if old.shared or groups.entry_of(group).members == "*" then representatives.settle(group, near.chosen[group] or old.representative) end
    local now = groups.ranking(group)
    if old.representative then
      represented[old.representative] = true
      indexed = indexed - 1
    end
    if now.representative then
      now_represents[now.representative] = true
      indexed = indexed + 1
      if now.representative ~= old.representative or groups.new_texts[now.representative] or not groups.same_noted(now.noted, old.noted) then pushes[now.representative] = true end
    end
  end
  if indexed ~= 0 then call("HINCRBY", keys.counters, "indexed", indexed) end
  local by_site = {}  -- documents in the index
  for sign, ids in pairs({[-1] = represented, [1] = now_represents}) do
    local both = sign == 1 and represented or now_represents
    for id in pairs(ids) do
      local one = was[id] or get(id)  -- neither where the record is quarantined
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
  for id in pairs(represented) do
    local row = get(id)
    if not now_represents[id] and not groups.is_left_in_index(id) and (was[id] or row) then
      deletes[id] = true
      if row and row[CHECKSUM] then displaced = displaced + 1 end
    end
  end
  for id in pairs(groups.taken_back) do
    local row = get(id)
    if not row or groups.representative_of(id, row) ~= id then deletes[id] = true end
  end
  groups.keep_texts(checksums)
  for id, document in pairs(groups.kept_documents) do
    if groups.left_group[id] or groups.is_left_in_index(id) then outbox.keep_orders(was[id].url, document) end
  end
  for id in pairs(pushes) do  -- a held document that has left its group stays in the index as it is
    local row = get(id)  -- none where the record is quarantined
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
