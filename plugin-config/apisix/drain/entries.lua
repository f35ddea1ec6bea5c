--- The deny-list. It lives in a shared dictionary, which serialises its operations; each worker
-- keeps a copy (copy.lua) and brings it up to date by what changed.
--
--   gen            number of changes that a worker must see; a renewal is none
--   c|i            one of the last changes, "number id", by its number modulo the length of the log
--   e2|uid|ip|port when the entry expires (clock.now); port may be empty. Its flags: the number of
--                  the writer that put the entry last (writers.lua); none if it gave no name
--   s2|uid|ip|port true while the entry is sealed. A key of its own, so that sealing and renewing
--                  at the same time in two workers need no lock and a renewal cannot unseal
--   b2|uid|ip|port number of bypasses, and LATE times the number of requests that were sent there
--                  although it was sealed. The plugin never sends those by design, so each one
--                  shows a failure
--   t|uid|ip|port  when the entry was sealed (clock.now). Not part of s2: without room for it, only
--                  the time is unknown
--   f|uid|ip|port  when an ordinary request to the address last finished (clock.now)
--   n|uid|ip|port  the successors of its pod, as text (successors.lua); absent if there are none
--   late           the sum of those late requests over all entries, ever
--   x|uid|ip|port  true while a worker removes the entry because it has expired
--
-- The dictionary itself expires no entry, because it uses the wall clock, which may step. The 2 in
-- the keys: an older release used that expiry, and workers of both may run at once after a reload.
--
-- Only operations that never evict are used: a full dictionary is an error to report, and must
-- not silently cost another pod its entry.
local copy         = require("apisix.drain.copy")
local clock        = require("apisix.drain.clock")
local writers      = require("apisix.drain.writers")
local clock_now    = clock.now
local ngx          = ngx
local setmetatable = setmetatable
local ipairs       = ipairs
local pairs        = pairs
local next         = next
local floor        = math.floor
local max          = math.max

-- more than the bypasses that one entry can get; a number is exact up to 2^53
local LATE     = 2 ^ 27
-- seconds until x| ends by itself, if the worker that set it was killed
local CLEARING = 10
-- how often to wait for another worker to clear the entry, which takes microseconds
local TRIES    = 1000
local PAUSE    = 0.001

local NONE = {}

local _M = { DRAINING = "draining", SEALED = "sealed", level = copy.level }
local mt = { __index = _M }


local function id_of(entry)
    return entry.uid .. "|" .. entry.ip .. "|" .. (entry.port or "")
end
_M.id_of = id_of


--- @tparam table dict an ngx.shared dictionary that only entries use
function _M.new(dict)
    dict:safe_add("gen", 0)
    dict:safe_add("late", 0)
    local mine = copy.new(dict)
    -- `set`: the last copy of this worker, for a first guess without a read
    return setmetatable({ dict = dict, copy = mine, set = mine.set }, mt)
end


local function forget(dict, id)
    dict:delete("e2|" .. id)
    dict:delete("s2|" .. id)
    dict:delete("b2|" .. id)
    dict:delete("t|" .. id)
    dict:delete("f|" .. id)
    dict:delete("n|" .. id)
end


-- Removes an entry that has expired, but never one that another process puts at the same time:
-- this function sets x| and then reads the entry; a put writes the entry and then reads x|.
local function clear(dict, id)
    if not dict:safe_add("x|" .. id, true, CLEARING) then
        return
    end
    local till = dict:get("e2|" .. id)
    if till and till <= clock_now() then
        forget(dict, id)
    end
    dict:delete("x|" .. id)
end


local function create(dict, id, expires, writer)
    local ok, err = dict:safe_set("b2|" .. id, 0)
    if ok then
        ok, err = dict:safe_set("e2|" .. id, expires, 0, writer)
    end
    if not ok then
        forget(dict, id)
    end
    return ok, err
end


local function follow(dict, id, successors)
    if successors == "" then
        dict:delete("n|" .. id)
        return true
    end
    return dict:safe_set("n|" .. id, successors)
end


-- @treturn boolean|nil written; nil if another worker has just removed it
-- @treturn string|nil "no memory"
-- @treturn boolean|nil whether it is a change that workers must see
local function write(dict, id, entry)
    local now = clock_now()
    local till, flags = dict:get("e2|" .. id)
    if till and till <= now then
        -- this removes its seal and its counts too
        clear(dict, id)
        return nil
    end

    local writer = entry.by and writers.number(dict, entry.by) or flags or 0
    if not till then
        local ok, err = create(dict, id, now + entry.ttl, writer)
        if not ok then
            return false, err
        end
    elseif not dict:replace("e2|" .. id, now + entry.ttl, 0, writer) then
        return nil
    end

    local changed = not till
    if entry.successors and entry.successors ~= (dict:get("n|" .. id) or "") then
        local ok, err = follow(dict, id, entry.successors)
        if not ok then
            if changed then
                forget(dict, id)
            end
            return false, err
        end
        changed = true
    end
    if entry.state == _M.SEALED then
        -- before the seal, so that a sealed entry has its time; a later put does not change it
        dict:safe_add("t|" .. id, now)
        local ok, err = dict:safe_add("s2|" .. id, true)
        if not ok and err ~= "exists" then
            if changed then
                forget(dict, id)
            end
            return false, err
        end
        changed = changed or ok
    end
    return true, nil, changed
end


--- Sets, renews or seals one entry.
-- @tparam table entry { uid, ip (canonical), port?, state, ttl, successors?, by? }: without one of
--   the last two it stays as it is
-- @treturn boolean stored
-- @treturn string|nil "no memory" if the dictionary is full; the entry stays as it was
function _M:put(entry)
    local dict, id = self.dict, id_of(entry)
    local changed = false
    for try = 1, TRIES do
        local ok, err, news = write(dict, id, entry)
        if ok == false then
            return false, err
        end
        changed = changed or news
        if ok and not dict:get("x|" .. id) and dict:get("e2|" .. id) then
            if changed then
                copy.changed(dict, id)
            end
            return true
        end
        if try > 2 then
            ngx.sleep(PAUSE)
        end
    end
    if changed then
        copy.changed(dict, id)
    end
    return false, "it has just expired and is being cleared away: put it again"
end


--- The deny-list as it is now. Two comparisons and one read of the dictionary, unless it changed.
-- @treturn table { n, ips, gen }, for level, bypassed and passed
function _M:current()
    self.set = self.copy:current()
    return self.set
end


--- Counts a bypass on every entry that covers the address.
function _M:bypassed(set, addr)
    for _, entry in ipairs(set.ips[addr.ip] or {}) do
        if not entry.port or entry.port == addr.port then
            self.dict:incr("b2|" .. entry.id, 1)
        end
    end
end


--- Counts a request that is sent to this address in spite of the deny-list.
function _M:passed(set, addr)
    for _, entry in ipairs(set.ips[addr.ip] or {}) do
        if entry.sealed and (not entry.port or entry.port == addr.port) then
            self.dict:incr("b2|" .. entry.id, LATE)
            self.dict:incr("late", 1)
        end
    end
end


--- An ordinary request to this address is about to be counted down. Called before the count, so
-- that a reader who sees 0 in flight sees the time of the last request too.
function _M:finished(addr)
    for _, entry in ipairs(self:current().ips[addr.ip] or NONE) do
        if not entry.port or entry.port == addr.port then
            self.dict:safe_set("f|" .. entry.id, clock_now())
        end
    end
end


--- For how long an entry has been sealed, and for how long it has also been idle: since its
-- seal, or since its last request finished. In seconds; nil if the time is not known.
-- @tparam number now by clock.now
function _M:ages(entry, now)
    local sealed = self.dict:get("t|" .. entry.id)
    if not sealed then
        return nil
    end
    local idle = max(sealed, self.dict:get("f|" .. entry.id) or 0)
    return max(0, now - sealed), max(0, now - idle)
end


--- Requests that got the node in spite of this entry.
-- @treturn number while it was draining: the bypasses
-- @treturn number while it was sealed: the late ones
function _M:passes(entry)
    local both = self.dict:get("b2|" .. entry.id) or 0
    return both % LATE, floor(both / LATE)
end


--- Entries that came, went or were sealed since the last call; at first all entries. Only the
-- code that makes the worker's word may call it, since each call empties the list.
-- @treturn table ids, as keys
function _M:touched()
    local mine = self.copy
    local touched = mine.touched
    if not touched then
        touched = {}
        for id in pairs(mine.by_id) do
            touched[id] = true
        end
    end
    mine.touched = {}
    return touched
end


--- The entries that name an address among their successors.
-- @treturn table { [id] = entry }
function _M:naming(ip)
    return self.copy.named[ip] or NONE
end


function _M:is_touched()
    return next(self.copy.touched or {}) ~= nil
end


--- The entry of this id in this worker's copy, or nil.
function _M:held_as(id)
    return self.copy.by_id[id]
end


--- The number of the entry's last change: older statements do not count for it.
-- @treturn number|nil nil if there is no such entry
function _M:since(id)
    self:current()
    local entry = self.copy.by_id[id]
    return entry and entry.since
end


--- Seconds until it expires. Reads the dictionary, because a worker's copy misses renewals.
function _M:left(entry)
    if entry.left then
        return entry.left
    end
    local left = (self.dict:get("e2|" .. entry.id) or entry.expires) - clock_now()
    return left > 0 and left or 0
end


--- The name of the writer that put it last, or nil.
function _M:by(entry)
    local _, flags = self.dict:get("e2|" .. entry.id)
    return writers.name(self.dict, flags)
end


--- The stored entry with the same uid, ip and port, or nil.
function _M:find(entry)
    local id = id_of(entry)
    local left = (self.dict:get("e2|" .. id) or 0) - clock_now()
    if left <= 0 then
        return nil
    end
    return {
        id = id, uid = entry.uid, ip = entry.ip, port = entry.port,
        sealed = self.dict:get("s2|" .. id) == true, left = left,
    }
end


--- Removes every entry of these uids. @treturn number how many entries there were
function _M:remove(uids)
    local removed = 0
    for _, entry in ipairs((self:of_uids(uids))) do
        forget(self.dict, entry.id)
        copy.changed(self.dict, entry.id)
        removed = removed + 1
    end
    return removed
end


--- All entries. @treturn table list
function _M:all()
    self:current()
    local list = {}
    for _, entry in pairs(self.copy.by_id) do
        list[#list + 1] = entry
    end
    return list
end


--- Entries by uid. @treturn table found @treturn table uids with no entry
function _M:of_uids(uids)
    self:current()
    local asked, found, unknown = {}, {}, {}
    for _, uid in ipairs(uids) do
        if not asked[uid] then
            asked[uid] = true
            local of_uid = self.copy.by_uid[uid]
            if not of_uid then
                unknown[#unknown + 1] = uid
            end
            for _, entry in pairs(of_uid or {}) do
                found[#found + 1] = entry
            end
        end
    end
    return found, unknown
end


--- The totals of all entries. It costs the same for any number of them.
-- @treturn table { entries, generation, late }
function _M:held()
    local set = self:current()
    return { entries = set.n, generation = set.gen, late = self.dict:get("late") or 0 }
end


--- Removes some of the expired entries. @tparam number most how many at most
function _M:clear(most)
    for _ = 1, most do
        local id = self.copy:expired()
        if not id then
            return
        end
        clear(self.dict, id)
    end
end


return _M
