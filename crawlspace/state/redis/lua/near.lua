-- Groups of near duplicates, see `state/near_duplicates.py`, of whose functions these are a copy. The hash `near_text` has the signatures of the
-- leading texts, `near_band` those with a band of a simhash, each as 8 bytes of the simhash, the length of the checksum and the checksum.
-- The hash `near` has by id the group of a page with another text; the sets `near:…` have the ids by group, and the hash `near_group` has by
-- text its group, after the number of its pages there. Groups are changed only after all that may be damaged was read; damaged values count as none.

forget_after_call(function()
  near.groups = {}  -- by id; false: none
  near.chosen = {}  -- by group: the page that represents it from now on, whichever did before
  near.has_any = nil  -- whether there were any at the beginning of the call
end)

near.MOST = 500
near.MOST_IN_BAND = 16
near.SIZE = 140
near.BANDS = {{23, 2, 1}, {21, 1, 0}, {20, 1, 0}}  -- bits, and how many of them are tried the other way round for distances 6 and 3
near.OF_LENGTH = 2 ^ 25  -- the class of the length stands above a band and its number
near.WORDS_OF_ONE = {[3] = 500, [6] = 100}
near.ones = {}
for value = 0, 255 do
  local ones, rest = 0, value
  while rest > 0 do
    ones, rest = ones + rest % 2, (rest - rest % 2) / 2
  end
  near.ones[value] = ones
end

function near.within() return tonumber(call("HGET", keys.meta, "near_duplicates") or 0) or 0 end

function near.epoch() return tonumber(call("HGET", keys.meta, "near_duplicates_epoch") or 0) or 0 end

function near.epoch_of(signature) return string.byte(signature, 12) end

function near.of(id)
  if near.groups[id] == nil then
    if near.has_any == nil then near.has_any = call("EXISTS", keys.near) == 1 end
    near.groups[id] = near.has_any and call("HGET", keys.near, id)
  end
  return near.groups[id] or nil
end

-- The key of the near duplicates in a group; one of another type is deleted, for its members are unknown.
function near.pages_key(group)
  local key = PREFIX.near .. group
  local kind = call("TYPE", key).ok
  if kind ~= "set" and kind ~= "none" then call("DEL", key) end
  return key
end

function near.is_full(group)
  local pages = redis.pcall("SCARD", PREFIX.near .. group)
  return type(pages) == "number" and pages >= near.MOST
end

-- Whether a text comes before another, by bytes: the server compares by its language.
function near.is_less(one, other)
  for n = 1, math.min(#one, #other) do
    local mine, others = string.byte(one, n), string.byte(other, n)
    if mine ~= others then return mine < others end
  end
  return #one < #other
end

function near.distance(one, other)
  local bits = 0
  for n = 1, 8 do bits = bits + near.ones[bit.bxor(string.byte(one, n), string.byte(other, n))] end
  return bits
end

function near.words_of(signature)
  local words = 0
  for n = 11, 9, -1 do words = words * 256 + string.byte(signature, n) end
  return words
end

function near.is_near(one, other, within)
  if within == 0 or near.distance(one, other) > within then return false end
  local words, others = near.words_of(one), near.words_of(other)
  local most = 2 * math.max(words, others) / near.WORDS_OF_ONE[within]
  local least = math.abs(words - others)
  if least > most then return false end
  local squares = least
  for n = 13, near.SIZE do
    local mine, its = string.byte(one, n), string.byte(other, n)
    if mine ~= its then
      local apart = math.abs(mine - its)
      apart = math.min(apart, 256 - apart)
      least, squares = least + apart, squares + apart * apart
      if least > most or squares > 2 * most then return false end
    end
  end
  return true
end

-- The class of texts with so many words, see `_class_of` in `simhash.py`.
function near.class_of(words)
  local _, bits = math.frexp(words)
  return bits * 4 + math.floor(words * 8 / 2 ^ bits) % 4
end

-- The three bands of a simhash in a class of lengths, see `bands` in `simhash.py`.
function near.bands(signature, of_length)
  local b = {string.byte(signature, 1, 8)}
  local first = math.floor(b[6] / 2) + b[7] * 128 + b[8] * 32768
  local second = math.floor(b[3] / 16) + b[4] * 16 + b[5] * 4096 + (b[6] % 2) * 1048576
  local third = b[1] + b[2] * 256 + (b[3] % 16) * 65536
  local at = (of_length or near.class_of(near.words_of(signature))) * near.OF_LENGTH
  return {at + first, at + 8388608 + second, at + 16777216 + third}
end

function near.probes(signature, within)
  local found = {}
  local words, of_one = near.words_of(signature), near.WORDS_OF_ONE[within]
  local least, most = words - math.floor(2 * words / of_one), math.floor(words * of_one / (of_one - 2))
  for of_length = near.class_of(least), near.class_of(most) do
    for n, band in ipairs(near.bands(signature, of_length)) do
      local size, of_six, of_three = unpack(near.BANDS[n])
      local flips = within > 3 and of_six or of_three
      local changes = {}  -- by bit, what the value changes by
      for one = 1, size do
        local is_set = math.floor(band / 2 ^ (one - 1)) % 2 == 1
        changes[one] = is_set and -2 ^ (one - 1) or 2 ^ (one - 1)
      end
      found[#found + 1] = band
      for one = 1, flips > 0 and size or 0 do
        local flipped = band + changes[one]
        found[#found + 1] = flipped
        for other = 1, flips > 1 and one - 1 or 0 do found[#found + 1] = flipped + changes[other] end
      end
    end
  end
  return found
end

-- Call a function with the simhash and the checksum of each entry of a band.
function near.each_entry(text, take)
  local at = 1
  while text and at + 8 <= #text do
    local size = string.byte(text, at + 8)
    take(string.sub(text, at, at + 7), string.sub(text, at + 9, at + 8 + size), string.sub(text, at, at + 8 + size))
    at = at + 9 + size
  end
end

function near.signature(text)
  local signature = call("HGET", keys.near_text, text)
  return signature and #signature == near.SIZE and signature or nil
end

function near.enter(text, signature)
  for _, band in ipairs(near.bands(signature)) do
    local entries, found, is_there = call("HGET", keys.near_band, band) or "", 0, false
    near.each_entry(entries, function(_, other) found, is_there = found + 1, is_there or other == text end)
    if found < near.MOST_IN_BAND and not is_there then
      call("HSET", keys.near_band, band, entries .. string.sub(signature, 1, 8) .. string.char(#text) .. text)
    end
  end
end

-- Enter some leading texts of an earlier version, which looked them up by other bands. Returns the cursor to continue; "0": complete.
function writes.enter_earlier(args)
  if not ownership.stays_alive(args.worker) then return false end
  if call("EXISTS", keys.earlier_bands) == 0 then return "0" end
  local found = call("HSCAN", keys.near_text, args.cursor, "COUNT", args.limit)
  for n = 1, #found[2], 2 do
    if #found[2][n + 1] == near.SIZE then near.enter(found[2][n], found[2][n + 1]) end
  end
  if found[1] == "0" then call("UNLINK", keys.earlier_bands) end
  return found[1]
end

function near.lead(text, signature)
  local old = call("HGET", keys.near_text, text)
  if old then
    call("HDEL", keys.near_text, text)
    if #old == near.SIZE then
      for _, band in ipairs(near.bands(old)) do
        local left = {}
        near.each_entry(call("HGET", keys.near_band, band), function(_, other, entry)
          if other ~= text then left[#left + 1] = entry end
        end)
        if #left == 0 then call("HDEL", keys.near_band, band) else call("HSET", keys.near_band, band, table.concat(left)) end
      end
    end
  end
  if signature and #signature == near.SIZE then
    call("HSET", keys.near_text, text, signature)
    near.enter(text, signature)
  end
end

-- The leading text whose group a text would join.
function near.leading_text(signature, within, but, left)
  local found, seen = {}, {}
  local ones, xor, bytes = near.ones, bit.bxor, string.byte
  local a, b, c, d, e, f, g, h = bytes(signature, 1, 8)
  for _, entries in ipairs(call("HMGET", keys.near_band, unpack(near.probes(signature, within)))) do
    local at = 1
    while entries and at + 8 <= #entries do  -- as `each_entry`, without the texts that are not near: almost all
      local i, j, k, l, m, n, o, p, size = bytes(entries, at, at + 8)
      -- first the bytes in the middle: at the end that has the band most bits are equal
      local apart = ones[xor(d, l)] + ones[xor(e, m)] + ones[xor(c, k)] + ones[xor(f, n)]
      if apart <= within then
        apart = apart + ones[xor(a, i)] + ones[xor(b, j)] + ones[xor(g, o)] + ones[xor(h, p)]
        local text = apart <= within and string.sub(entries, at + 9, at + 8 + size)
        if text and text ~= but and text ~= left and not seen[text] then
          seen[text] = true
          local its = near.signature(text)
          if its and near.is_near(signature, its, within) then found[#found + 1] = {apart, text} end
        end
      end
      at = at + 9 + size
    end
  end
  table.sort(found, function(one, other)
    if one[1] ~= other[1] then return one[1] < other[1] end
    return near.is_less(one[2], other[2])
  end)
  for _, one in ipairs(found) do
    if not near.is_full(one[2]) then return one[2] end
  end
  return nil
end

-- As `joined_text`.
function near.joined_text(text, signature, within, left)
  local led = near.signature(text)
  local is_earlier = led and near.epoch_of(led) ~= near.epoch_of(signature)
  return near.leading_text(signature, within, is_earlier and text or nil, left)
end

function near.group_of(text)
  local entry = call("HGET", keys.near_group, text)
  return entry and string.match(entry, "^%d+:(.*)$") or nil
end

-- Add to the number of pages of a near duplicate.
function near.count(text, group, by)
  local pages = tonumber(string.match(call("HGET", keys.near_group, text) or "", "^(%d+):") or 0) + by
  if pages <= 0 then return call("HDEL", keys.near_group, text) end
  call("HSET", keys.near_group, text, string.format("%d:", pages) .. group)  -- not by `%s`, which ends at a zero byte
end

function near.join(id, text, group)
  near.groups[id] = group
  call("HSET", keys.near, id, group)
  call("SADD", near.pages_key(group), id)
  near.count(text, group, 1)
end

function near.leave(id, text)
  local group = near.of(id)
  if not group then return end
  near.groups[id] = false
  call("HDEL", keys.near, id)
  call("SREM", near.pages_key(group), id)
  near.count(text, group, -1)
end

-- The group of a page that is no alternate of a canonical page; nil for another URL.
function near.group(id)
  local row = get(id)
  if not row or not row[CHECKSUM] then return nil end
  local group = near.of(id)
  if group then return group end
  if groups.alternate_before(id) then return nil end
  return row[CHECKSUM]
end

function near.pages(group)
  local ids = {}
  for _, id in ipairs(call("SMEMBERS", near.pages_key(group))) do ids[#ids + 1] = tonumber(id) end
  prefetch(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if rows[id] and rows[id][CHECKSUM] then found[#found + 1] = id end
  end
  return found
end

-- The place of a page among those that may represent a group, as text.
function near.order(group, id) return string.sub(groups.rank_in(group, id, false), 2, 24) end

-- The ids of the pages with the group's own text.
function near.own_pages(group)
  local members = groups.entry_of(group).members
  if members == "" then return {} end
  if members ~= "*" then return {tonumber(members)} end
  local ids = {}
  for n, member in ipairs(call("ZRANGEBYLEX", groups.group_key(group), "[0", "(1")) do ids[n] = representatives.id_of(member) end
  prefetch(ids)
  return ids
end

function near.first_of_host(group, host)
  local members = groups.entry_of(group).members
  if members == "" then return nil end
  if members ~= "*" then
    local id = tonumber(members)
    return (not host or representatives.host_of(id) == host) and id or nil
  end
  local first = call("ZRANGE", groups.group_key(group), 0, 0)[1]
  local id = first and representatives.id_of(first)
  if host then id = representatives.first_of(group, host) end
  local member = id and call("HGET", groups.member_key(group), id)
  return member and string.sub(member, 1, 1) == "0" and id or nil
end

function near.has_many(group, most)
  return groups.entry_of(group).members == "*" and call("ZLEXCOUNT", groups.group_key(group), "[0", "(1") > (most or near.MOST)
end

-- The group of a page, if it has no other page; else nil.
function near.group_alone(id)
  local group = near.group(id)
  if not group or near.has_many(group, 1) then return nil end
  for _, other in ipairs(near.own_pages(group)) do
    if other ~= id then return nil end
  end
  for _, other in ipairs(near.pages(group)) do
    if other ~= id then return nil end
  end
  return group
end

function near.winner(group, pages, before)
  local present = near.chosen[group] or before[group] and before[group].representative
  local host = present and near.group(present) == group and representatives.host_of(present)
  local winner, best
  local function consider(id)
    local order = near.order(group, id)
    if not best or order < best then winner, best = id, order end
  end
  for _, id in ipairs(pages) do
    if not host or representatives.host_of(id) == host then consider(id) end
  end
  local first = near.first_of_host(group, host)
  if first then consider(first) end
  return winner
end

-- The URLs that name a page with this key as canonical, also those that do so since this call.
function near.followers(key)
  local ids, seen = {}, {}
  local function add(id)
    if not seen[id] then ids[#ids + 1], seen[id] = id, true end
  end
  for _, id in ipairs(call("SMEMBERS", PREFIX.names .. key)) do add(tonumber(id)) end
  groups.each_changed(add)
  prefetch(ids)
  local found = {}
  for _, id in ipairs(ids) do
    if rows[id] and rows[id][CHECKSUM] and rows[id][CANONICAL] == key then found[#found + 1] = id end
  end
  return found
end

function near.set_alternate(id, group)
  groups.alternates[id] = group or false
  if group then call("HSET", keys.alternate, id, group) else call("HDEL", keys.alternate, id) end
end

-- Move the pages with a text to another group, with their alternates.
function near.move(text, group, into, remember)
  local ids = {}
  if text == group then
    ids = near.own_pages(group)
  else
    for _, id in ipairs(near.pages(group)) do
      if rows[id][CHECKSUM] == text then ids[#ids + 1] = id end
    end
  end
  table.sort(ids)
  remember(group)
  remember(into)
  for _, id in ipairs(ids) do
    local row = rows[id]
    if row then
      groups.leave(group, id)
      near.leave(id, text)
      if into ~= text then near.join(id, text, into) end
      near.set_alternate(id, into ~= text and into or nil)
      groups.join(into, id, into ~= text)
      if not row[CANONICAL] and groups.canonical_page(row[KEY]) == id then
        for _, other in ipairs(near.followers(row[KEY])) do
          local from = groups.alternate_before(other)
          if from then
            remember(from)
            groups.leave(from, other)
          end
          near.set_alternate(other, into)
          groups.join(into, other, true)
        end
      end
    end
  end
end

-- As `_leave_earlier`.
function near.leave_earlier(group, text, signature, within, remember)
  local led = near.signature(group)
  if not led then return {} end
  if group ~= text then
    if near.is_near(led, signature, within) then return {} end
    near.move(text, group, text, remember)
    return {{text, signature}}
  end
  if near.epoch_of(led) == near.epoch_of(signature) then return {} end
  local texts, signatures = {}, {}
  for _, id in ipairs(near.pages(group)) do
    local other, its = rows[id][CHECKSUM], rows[id][SIMHASH]
    if signatures[other] == nil then texts[#texts + 1] = other end
    signatures[other] = its and #its == near.SIZE and its or false
  end
  near.lead(text)
  table.sort(texts, near.is_less)
  local leaving = {}
  for _, other in ipairs(texts) do
    near.move(other, group, other, remember)
    leaving[#leaving + 1] = {other, signatures[other] or nil}
  end
  return leaving
end

-- As `_elect`.
function near.elect(group, within, epoch, before, remember)
  local signature = near.signature(group)
  if not signature then return {} end
  local pages, own = near.pages(group), near.first_of_host(group)
  remember(group)
  if #pages == 0 then
    if not own or within == 0 then near.lead(group) end
    return {}
  end
  local winner = near.winner(group, pages, before)
  local text_of_winner = rows[winner][CHECKSUM]
  if within > 0 and (text_of_winner == group or near.has_many(group)) then return {} end
  local signatures, texts, seen = {}, {}, {}
  local function add(text)
    if not seen[text] then texts[#texts + 1], seen[text] = text, true end
  end
  for _, id in ipairs(pages) do
    add(rows[id][CHECKSUM])
    local its = rows[id][SIMHASH]
    if its and #its == near.SIZE then signatures[rows[id][CHECKSUM]] = its end
  end
  if own then
    add(group)
    signatures[group] = signature
  end
  local chosen = within > 0 and signatures[text_of_winner] or nil
  if chosen and near.epoch_of(signature) ~= epoch and near.leading_text(chosen, within, group) then chosen = nil end
  near.lead(group)
  table.sort(texts, function(one, other)
    if (one == text_of_winner) ~= (other == text_of_winner) then return one == text_of_winner end
    return near.is_less(one, other)
  end)
  local leaving = {}
  for _, text in ipairs(texts) do
    local its = signatures[text]
    if chosen and text == text_of_winner then
      near.lead(text, chosen)
      near.move(text, group, text, remember)
      near.chosen[text] = winner
    elseif chosen and its and near.is_near(chosen, its, within) then
      near.move(text, group, text_of_winner, remember)
    else
      if text ~= group then near.move(text, group, text, remember) end
      leaving[#leaving + 1] = {text, its}
    end
  end
  return leaving
end

-- As `regroup`: `ids` are the changed URLs, `before` has the rankings of groups before this call, and `remember` adds that of another one.
function near.regroup(ids, before, remember)
  local within, epoch, concerned, listed, leaving, left = near.within(), near.epoch(), {}, {}, {}, {}
  local function concern(group)
    if not listed[group] then concerned[#concerned + 1], listed[group] = group, true end
  end
  for group in pairs(before) do
    if near.signature(group) then
      if not near.first_of_host(group) and #near.pages(group) == 0 then
        near.lead(group)  -- as `_end_empty`
      else
        concern(group)
      end
    end
  end
  for _, id in ipairs(ids) do
    local group = near.group(id)
    local text, signature = group and rows[id][CHECKSUM], group and rows[id][SIMHASH]
    if signature and #signature == near.SIZE and within > 0 and near.epoch_of(signature) == epoch then
      for _, one in ipairs(near.leave_earlier(group, text, signature, within, remember)) do
        leaving[#leaving + 1], left[one[1]] = one, true
      end
    end
    if group and left[text] then
      -- it is evaluated below
    elseif group and (group ~= text or near.signature(text)) then
      concern(group)
    elseif group then
      local into = near.group_of(text)
      if not into and signature and #signature == near.SIZE and within > 0 then
        into = near.leading_text(signature, within)
        if not into then near.lead(text, signature) end
      end
      if into then
        near.move(text, text, into, remember)
        concern(into)
      end
    end
  end
  table.sort(concerned, near.is_less)
  for _, group in ipairs(concerned) do
    for _, one in ipairs(near.elect(group, within, epoch, before, remember)) do leaving[#leaving + 1] = one end
  end
  local seen, next_ = {}, 1
  while leaving[next_] do
    local text, signature = leaving[next_][1], leaving[next_][2]
    local into
    next_ = next_ + 1
    if not near.signature(text) and not near.group_of(text) then
      if signature and within > 0 and not seen[text] then into = near.leading_text(signature, within, text) end
      seen[text] = true
      if into then
        near.move(text, text, into, remember)
        for _, one in ipairs(near.elect(into, within, epoch, before, remember)) do leaving[#leaving + 1] = one end
      elseif signature and within > 0 then
        near.lead(text, signature)
      end
    end
  end
end
