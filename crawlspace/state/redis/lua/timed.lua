-- When known URLs are due: changes to many of them, in steps (`hastening.py` has the same of one row).

-- Change the next URLs for which `change` returns their new time; what else it changes of a record is written too.
-- What was set aside stands in its queue again, and is looked at again when its time has come.
function look.change(args, change)
  local places, seen, times = {}, {}, {}
  local found, last = look.walk(args.after, args.limit, 5000, function(row, id)
    times[id] = row[STATE] ~= PENDING and row[NEXT_FETCH] and change(row) or nil
    return times[id] ~= nil
  end)
  for _, id in ipairs(found) do
    local row = rows[id]
    row[NEXT_FETCH] = times[id]
    touch(id)
    local index = cache.queue_index_of(row)
    local place = row[SITE] .. ":" .. index
    if not seen[place] then
      seen[place] = {sites.name(row[SITE]), index, times[id]}
      places[#places + 1] = seen[place]
    end
    seen[place][3] = math.min(seen[place][3], times[id])
  end
  flush()
  return {#found, last, places}
end

function look.was_fetched_by(row, time) return time == nil or not row[FETCHED_AT] or row[FETCHED_AT] <= time end

function ops.hasten(args)
  return look.change(args, function(row)
    local is_late = row[NEXT_FETCH] > args.latest and (args.before == nil or row[NEXT_FETCH] < args.before)
    return is_late and look.was_fetched_by(row, args.fetched_by) and args.latest
  end)
end

function ops.schedule(args)
  return look.change(args, function(row)
    local is_ahead = row[FETCHED_AT] and row[FETCHED_AT] > args.latest + NAMES.times.CLOCKS_DIFFER_S
    if row[ASKED] or row[RETRIES] > 0 or not (is_ahead or look.was_fetched_by(row, args.fetched_by)) then return nil end
    row[ASKED] = NAMES.times.BY_SCHEDULE
    return args.latest
  end)
end

function ops.set_age_counts(args)
  return look.change(args, function(row)
    local at = row[NEXT_FETCH]
    if args.counts then return at >= NAMES.times.NOT_BY_AGE and math.min(at - NAMES.times.NOT_BY_AGE, args.latest) end
    local is_by_age = row[STATE] ~= FAILED and not row[ASKED] and row[RETRIES] == 0 and row[FETCHED_AT] and row[FETCHED_AT] < at
    return is_by_age and at < NAMES.times.NOT_BY_AGE and at + NAMES.times.NOT_BY_AGE
  end)
end

function ops.hasten_retries(args)
  local ids, limit = {}, 1000
  for _, place in ipairs(call("SMEMBERS", keys.due)) do
    if #ids >= limit then break end
    local site, queue_index = string.match(place, "(%d+):(%d+)")
    if tonumber(queue_index) < SHIFTS * SOURCES.REFRESH then
      for _, member in ipairs(call("ZRANGEBYSCORE", records.due_key(site, queue_index), "(" .. args.latest, "+inf", "LIMIT", 0, limit - #ids)) do
        ids[#ids + 1] = tonumber(member) - MEMBER
      end
    end
  end
  prefetch(ids)
  for _, id in ipairs(ids) do
    if rows[id] then
      rows[id][NEXT_FETCH] = args.latest
      touch(id)
    end
  end
  flush()
  return #ids
end
