-- Who stands for a group of pages of several hosts, where that isn't the one with the best rank.

function groups.member_key(group) return PREFIX.member .. group end  -- by id: its place in the group, and whom it names

-- Who stays although pages of other hosts have a better rank: see `standing` in `duplicates.py`. `placed` has by group the ids that got a place
-- in this call; `apart` the ids that leave their groups because their deletion is held and their pages are no documents any more, see `is_held_apart` there.
local incumbents = {placed = {}, apart = {}}
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
