-- Groups of duplicates, see `duplicates.py`. A group is named by a checksum. The hash `checksum` has for each the number of URLs that have it,
-- and the members of its group: none, one id, or `*` for those in the sorted set `group:…`, whose members are written so that their
-- order is their rank. The hash `incumbent` has who stands for a group where that isn't the one with the best rank.

local groups = {}

function groups.checksum_bucket(checksum)
  return string.format("%schecksum:%02x%02x", P, string.byte(checksum, 1) or 0, string.byte(checksum, 2) or 0)
end

groups.entries = {}
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

groups.asides = {}
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
