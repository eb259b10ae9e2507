-- The sample of refused links, see `refused_links.py`. For each letter of a reason, `refused:…` has the entries of hosts, the oldest first, and
-- `refused_hosts:…` the hosts by the number of the entry that was added last; one may have no entries any more. `refused_pages` has, in the
-- order of their bytes, members `page:letter host` for the hosts where a page has entries. All is read before anything is written.

forget_after_call(function() refused.by_page, refused.entries, refused.at, refused.hosts = {}, {}, {}, {} end)

function refused.letter_and_host(bucket) return string.sub(bucket, 1, 1), string.sub(bucket, 3) end

-- The entries of a bucket, `letter host`: each with URL, page, and rule or false.
function refused.entries_of(bucket)
  if not refused.entries[bucket] then
    local letter, host = refused.letter_and_host(bucket)
    local text = call("HGET", PREFIX.refused .. letter, host)
    local fine, entries = pcall(unpack_one, text or "\144")
    if not fine or type(entries) ~= "table" then error("the refused links of " .. host .. " are damaged") end
    refused.entries[bucket] = entries
  end
  return refused.entries[bucket]
end

-- The buckets with entries of a page: true, or false where it has none any more.
function refused.buckets_of(page)
  if not refused.at[page] then
    local head, buckets = string.format("%.0f:", page), {}
    local found = call("ZRANGEBYLEX", keys.refused_pages, "[" .. head, "(" .. string.format("%.0f;", page))
    for _, member in ipairs(found) do buckets[string.sub(member, #head + 1)] = true end
    refused.at[page] = buckets
  end
  return refused.at[page]
end

-- Keep the entries that `wanted` returns true for, and note the pages that have none left in the bucket.
function refused.filter(bucket, wanted)
  local kept, pages, left = {}, {}, {}
  for n, entry in ipairs(refused.entries_of(bucket)) do
    if wanted(entry, n) then
      kept[#kept + 1] = entry
      left[entry[2]] = true
    else
      pages[entry[2]] = true
    end
  end
  refused.entries[bucket] = kept
  for page in pairs(pages) do
    if not left[page] then refused.buckets_of(page)[bucket] = false end
  end
end

function refused.add(page, link)
  local letter, host, url, rule = unpack(link, 1, 4)
  local bucket = letter .. " " .. host
  refused.filter(bucket, function(entry) return entry[1] ~= url end)
  table.insert(refused.entries_of(bucket), {url, page, rule or false})
  refused.buckets_of(page)[bucket] = true
  refused.hosts[letter] = refused.hosts[letter] or {}
  refused.hosts[letter][host] = records.next_number("sampled")
end

-- Drop the hosts of a letter beyond their bound, those to which an entry was added longest ago.
function refused.drop_hosts(letter, added)
  local key, all = PREFIX.refused_hosts .. letter, {}
  local stored = call("ZRANGE", key, 0, -1, "WITHSCORES")
  local numbers = {}
  for n = 1, #stored, 2 do numbers[stored[n]] = tonumber(stored[n + 1]) end
  for host, number in pairs(added) do numbers[host] = number end
  for host in pairs(numbers) do all[#all + 1] = host end
  table.sort(all, function(one, two) return numbers[one] < numbers[two] end)
  for n = 1, #all - NAMES.most_sampled.hosts do
    added[all[n]] = nil
    later("ZREM", key, all[n])
    refused.filter(letter .. " " .. all[n], function() return false end)
  end
  for host, number in pairs(added) do later("ZADD", key, number, host) end
end

-- Note the change of a page, which had `before` for the numbers of its refused links.
function refused.note(id, change, before)
  if change.refused or (before and change.drops) then refused.by_page[#refused.by_page + 1] = {id, change.refused or {}} end
end

-- Drop the entries of the pages noted, add their new ones, and drop what is beyond the bounds.
function refused.replace()
  if #refused.by_page == 0 then return end
  local order, of = {}, {}
  for _, one in ipairs(refused.by_page) do
    local id = one[1]
    if not of[id] then order[#order + 1] = id end
    of[id] = one[2]
  end
  for _, id in ipairs(order) do
    for bucket in pairs(refused.buckets_of(id)) do refused.filter(bucket, function(entry) return entry[2] ~= id end) end
  end
  for _, id in ipairs(order) do
    for _, link in ipairs(of[id]) do refused.add(id, link) end
  end
  for bucket, entries in pairs(refused.entries) do
    local beyond = #entries - NAMES.most_sampled.links
    if beyond > 0 then refused.filter(bucket, function(_, n) return n > beyond end) end
  end
  for letter, added in pairs(refused.hosts) do refused.drop_hosts(letter, added) end
  for bucket, entries in pairs(refused.entries) do
    local letter, host = refused.letter_and_host(bucket)
    if #entries == 0 then
      later("HDEL", PREFIX.refused .. letter, host)
    else
      later("HSET", PREFIX.refused .. letter, host, pack(entries))
    end
  end
  for page, buckets in pairs(refused.at) do
    for bucket, is_there in pairs(buckets) do
      later(is_there and "ZADD" or "ZREM", keys.refused_pages, unpack(is_there and {0} or {}))
      table.insert(delayed[#delayed], string.format("%.0f:%s", page, bucket))
    end
  end
end
