local READS = {due = true, first_due = true, orders = true, parked = true, get = true, get_ids = true, scan = true, urls = true}
READS.lost_links, READS.counts = true, true
READS.workers, READS.sender = true, true

if not READS[ARGV[1]] then call("HINCRBY", P .. "n", ARGV[4] == "worker" and "writes" or "edits", 1) end
return ops[ARGV[1]](unpack_one(ARGV[2]))
