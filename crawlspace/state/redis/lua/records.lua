-- One URL is one record in a hash `url:…`: an array in MessagePack, its first element the version of the format; the positions of the
-- others are constants with the names of its fields (`library.py`). Those at the end that are empty are left out. 64-bit numbers are strings of 8 bytes: a number in Lua holds 53 bits.
-- The end of a lease, and the number of the worker that has it, are in the hash `lease` only, so that leasing writes no
-- record.

-- The functions by topic, each defined in the file of its name or where it is described; `reads` and `writes` are the operations that clients
-- call, of which `reads` write nothing.
local reads, writes = {}, {}
local records, sites, waits, cache, url_keys, groups, representatives, outbox = {}, {}, {}, {}, {}, {}, {}, {}
local near, inheritance, refused, record, reading, depths, queue, ownership = {}, {}, {}, {}, {}, {}, {}, {}

-- The functions stay on the server between calls; the state of a call does not. Each of these clears some of it.
local forgets = {}
local function forget_after_call(forget) forgets[#forgets + 1] = forget end

-- The keys and the beginnings of keys of the collection, by the names of `Key` and `Prefix`; P is the beginning of all.
local P, keys, PREFIX
local SINKS  -- the sinks that get orders
local call, pack, unpack_one  -- the server has them only while a function runs
local function of_collection(prefix, names)
  return setmetatable({}, {
    __index = function(whole, name)
      whole[name] = prefix .. (names[name] or error("no key is called " .. tostring(name)))
      return whole[name]
    end,
  })
end

local MEMBER = 1000000000000  -- added to ids in the queues: as many digits for all, so that equal scores go by id

-- A hash has the records of PART ids: look-ups cost more while a hash grows, and one of all URLs would grow for long.
function records.part_of(id) return math.floor(id / PART) end
function records.part_key(part) return PREFIX.records .. part end
function records.url_key(id) return records.part_key(records.part_of(id)) end

-- The records of at most 500 ids, in their order, false where there is none; a call for each run of ids of one part.
function records.texts_of(ids)
  local texts, first, count = {}, 1, #ids
  while first <= count do
    local part, last = records.part_of(ids[first]), first
    while last < count and records.part_of(ids[last + 1]) == part do last = last + 1 end
    local found = call("HMGET", records.part_key(part), unpack(ids, first, last))
    if first == 1 and last == count then return found end
    for n, text in ipairs(found) do texts[first + n - 1] = text end
    first = last + 1
  end
  return texts
end

function records.decoded(text)
  local fine, row, more = pcall(unpack_one, text)
  if not fine or more ~= nil or type(row) ~= "table" or row[1] ~= FORMAT then return nil end
  if type(row[DEPTH]) ~= "number" or type(row[SOURCE]) ~= "number" or type(row[SHIFT]) ~= "number" then return nil end
  if type(row[REDIRECTS]) ~= "number" or type(row[RANK]) ~= "number" then return nil end
  if type(row[URL]) ~= "string" or type(row[KEY]) ~= "string" or type(row[SITE]) ~= "number" then return nil end
  for position in pairs(ZERO) do row[position] = row[position] or 0 end
  return row
end

function records.pending_key(site, queue_index) return PREFIX.pending .. site .. ":" .. queue_index end
function records.due_key(site, queue_index) return PREFIX.due .. site .. ":" .. queue_index end

function records.first_due(site, queue_index)
  local first = call("ZRANGE", records.due_key(site, queue_index), 0, 0, "WITHSCORES")
  return first[2] and tonumber(first[2])
end

-- Writes are delayed until all reads of a call are done: a function that fails half-way keeps its writes.
local delayed
local counters, added  -- by name: the value of a counter, and the increment by this call
forget_after_call(function() delayed, counters, added = {}, {}, {} end)
local function later(...) delayed[#delayed + 1] = {...} end

local function write_all()
  for _, command in ipairs(delayed) do call(unpack(command)) end
  for name, by in pairs(added) do call("HINCRBY", keys.counters, name, by) end
  delayed, added = {}, {}
end

-- Raise an error if a key has a wrong type: a command for it would abort a function that has written.
function records.check_types()
  for name, kind in pairs(NAMES.types) do
    local found = call("TYPE", keys[name]).ok
    if found ~= kind and found ~= "none" then error("the key " .. name .. " is a " .. found) end
  end
end

-- Quarantine a record that is not ours: it is never read again.
function records.quarantine(id, text)
  later("HSET", keys.broken, id, text)
  later("HDEL", records.url_key(id), id)
  later("HDEL", keys.lease, id)
  later("HINCRBY", keys.counters, "broken", 1)
end

-- The next number of a counter. Raises an error if it is damaged.
function records.next_number(name)
  local last = counters[name]
  if not last then
    local text = call("HGET", keys.counters, name) or "0"
    last = tonumber(string.match(text, "^%d+$")) or error("the counter " .. name .. " is not an integer")
  end
  counters[name], added[name] = last + 1, (added[name] or 0) + 1
  return last + 1
end

-- Sites have numbers.
forget_after_call(function() sites.numbers, sites.names = {}, {} end)
function sites.find(name)
  if sites.numbers[name] == nil then
    local text = call("HGET", keys.site, name)
    sites.numbers[name] = text and (tonumber(text) or error("the number of the site " .. name .. " is no number")) or false
    if sites.numbers[name] then sites.names[sites.numbers[name]] = name end
  end
  return sites.numbers[name] or nil
end

function sites.number(name)
  local number = sites.find(name)
  if not number then
    number = records.next_number("sites")
    later("HSET", keys.site, name, number)
    later("HSET", keys.site_name, number, name)
    sites.numbers[name], sites.names[number] = number, name
  end
  return number
end

-- The waits of sites: until when, and for how many seconds, by the clock of the worker that wrote it.
function waits.of(site)
  local until_, wait_s = string.match(call("HGET", keys.wait, site) or "", "^(%d+) ?(%d*)$")
  return tonumber(until_ or 0), tonumber(wait_s ~= "" and wait_s or nil)
end

-- The same for a caller whose clock has `now`: never longer than originally, in case a clock was set back since.
function waits.bounded(site, now)
  local until_, wait_s = waits.of(site)
  local latest = now + ((wait_s or 0) > 0 and wait_s or 3600)
  if until_ <= latest then return until_ end
  call("HSET", keys.wait, site, string.format("%.0f %.0f", latest, latest - now))
  return latest
end

-- Whether a person has paused a site: `pause_of` in `site_pauses.py`.
forget_after_call(function() waits.pauses = nil end)
function waits.is_paused(site)
  if waits.pauses == nil then
    local text = call("HGET", keys.meta, "site_pauses") or ""
    waits.pauses = text ~= "" and cjson.decode(text)
  end
  if not waits.pauses then return false end
  local name = sites.name(site)
  local rest, port = string.match(name, "^(.*):(%d+)$")
  if waits.pauses[name] or waits.pauses[rest] then return true end
  rest = string.match(rest or "", "%.(.*)$")
  while rest do
    if waits.pauses["*." .. rest] or waits.pauses["*." .. rest .. ":" .. port] then return true end
    rest = string.match(rest, "%.(.*)$")
  end
  return false
end

-- At the start of a run: a site that did not respond in the last one need not wait.
function waits.end_of_unreachable()
  for _, name in ipairs(call("HKEYS", keys.unreachable)) do call("HDEL", keys.wait, sites.find(name) or 0) end
end

function sites.name(number)
  if not sites.names[number] then
    sites.names[number] = call("HGET", keys.site_name, number) or error("the site " .. number .. " has no name")
  end
  return sites.names[number]
end
