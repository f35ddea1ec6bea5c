--- The deny-list: all entries (entry.lua). Each worker keeps a copy of them (copy.lua), and applies
-- only the changes to it.
local copy         = require("apisix.drain.copy")
local entry_mod    = require("apisix.drain.entry")

local NONE = {}

local _M = {
    DRAINING = entry_mod.DRAINING,
    SEALED   = entry_mod.SEALED,
    OUTDATED = entry_mod.OUTDATED,
    level    = copy.level,
    id_of    = entry_mod.id_of,
}
local mt = { __index = _M }


--- @tparam table dict an ngx.shared dictionary that only entries use
function _M.new(dict)
    entry_mod.prepare(dict)
    local mine = copy.new(dict)
    -- `set`: the last copy of this worker, for a first guess without a read
    return setmetatable({ dict = dict, copy = mine, set = mine.set }, mt)
end


--- See entry.put.
function _M:put(entry)
    return entry_mod.put(self.dict, entry)
end


--- The deny-list as it is now. If it has not changed, this costs two comparisons and one read of
-- the dictionary.
-- @treturn table { n, ips, gen }, for level, bypassed and passed
function _M:current()
    self.set = self.copy:current()
    return self.set
end


-- Notes something on every entry that covers the address.
local function note(self, set, addr, on_any, on_sealed)
    for _, entry in ipairs(set.ips[addr.ip] or NONE) do
        local on = on_any or entry.sealed and on_sealed
        if on and (not entry.port or entry.port == addr.port) then
            on(self.dict, entry.id)
        end
    end
end


--- Counts a bypass on every entry that covers the address.
function _M:bypassed(set, addr)
    note(self, set, addr, entry_mod.bypassed)
end


--- Counts a request that is sent to this address, on every sealed entry that covers the address.
function _M:passed(set, addr)
    note(self, set, addr, nil, entry_mod.late)
end


--- Stores when an ordinary request to this address ended. Called before the request is counted
-- down, so that a reader who sees 0 in flight also sees the time of the last request. Uses the copy
-- of this worker, which is at most one beat old (runtime.lua).
function _M:finished(addr)
    note(self, self.set, addr, entry_mod.finished)
end


--- Frees the keys that have expired, about once a minute. nginx itself frees them only if they are
-- the least recently used ones, so they would fill the dictionary.
function _M:tidy()
    self.dict:flush_expired()
end


--- Entries that were added, removed or changed since the last call; the first call returns all
-- entries. Only the code that makes the worker's word may call it: each call empties the list.
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


--- The number of the entry's last change. Words from before that change do not count for the entry.
-- @treturn number|nil nil if there is no such entry
function _M:since(id)
    self:current()
    local entry = self.copy.by_id[id]
    return entry and entry.since
end


--- Seconds until an entry expires. Reads the dictionary, because a worker's copy misses renewals.
function _M:left(entry)
    if entry.left then
        return entry.left
    end
    local left = entry_mod.left(self.dict, entry.id, entry.expires)
    return left > 0 and left or 0
end


--- The stored entry with the same uid, ip and port, or nil.
function _M:find(entry)
    local id = entry_mod.id_of(entry)
    local left = entry_mod.left(self.dict, id)
    if left <= 0 then
        return nil
    end
    return {
        id = id, uid = entry.uid, ip = entry.ip, port = entry.port,
        sealed = entry_mod.is_sealed(self.dict, id), left = left,
    }
end


--- Removes the entries of these uids.
-- @tparam number|nil as_of for a while, puts as of an earlier revision are refused
-- @tparam table stops by uid: only the entries of this stop of containers
-- @treturn number how many entries there were
function _M:remove(uids, as_of, stops)
    for _, uid in ipairs(as_of and uids or NONE) do
        entry_mod.outdate(self.dict, uid, as_of)
    end
    local removed = 0
    for _, entry in ipairs((self:of_uids(uids))) do
        local stop = stops[entry.uid]
        if not stop or stop == entry_mod.text_of(self.dict, "k|", entry.id) then
            entry_mod.forget(self.dict, entry.id)
            copy.changed(self.dict, entry.id)
            removed = removed + 1
        end
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


--- The totals of all entries. The cost does not grow with their number.
-- @treturn table { entries, generation, late }
function _M:held()
    local set = self:current()
    return { entries = set.n, generation = set.gen, late = entry_mod.all_late(self.dict) }
end


--- Removes some of the expired entries. @tparam number most how many at most
function _M:clear(most)
    for _ = 1, most do
        local id = self.copy:expired()
        if not id then
            return
        end
        entry_mod.clear(self.dict, id)
    end
end


return _M
