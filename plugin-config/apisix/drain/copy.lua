--- A worker's copy of the deny-list (entries.lua), in the worker's own memory. It is updated
-- by changes: the dictionary keeps the last changes in a ring, each under its number.
-- Only a worker that is new, or has missed more changes than the ring holds, reads all entries.
local successors   = require("apisix.drain.successors")
local ways         = require("apisix.drain.ways")
local clock_now    = require("apisix.drain.host").now
local str_match    = string.match
local str_sub      = string.sub
local floor        = math.floor
local huge         = math.huge
local max          = math.max
local min          = math.min
local remove       = table.remove

-- the ring takes some 2 % of the dictionary: a change has about 150 bytes
local BYTES_PER_CHANGE, FEWEST, MOST = 8192, 16, 2048
-- entries that expire within this time, in seconds, are looked up together
local TOGETHER = 1

local _M = {}
local mt = { __index = _M }


local function ring_of(dict)
    return max(FEWEST, min(MOST, floor(dict:capacity() / BYTES_PER_CHANGE)))
end


--- @tparam table dict of the entries
function _M.new(dict)
    return setmetatable({
        dict = dict, ring = ring_of(dict),
        by_id = {}, by_uid = {}, ips = {}, n = 0, expires = huge, over = {},
        named = {},         -- { [ip] = { [id] = entry } }: entries with this ip as a successor
        asked = {},         -- { [key] = { [id] = entry } }: entries with this question
        set = { gen = -1, n = 0, ips = {}, expires = 0 },
        touched = nil,      -- { [id] = true }: changed entries; nil until entries.touched is called
    }, mt)
end


--- Reports to every worker that an entry was put, sealed or removed. Called after the write.
function _M.changed(dict, id)
    local number = dict:incr("gen", 1)
    -- if this write finds no room, or a worker reads before it, the worker reads all entries
    dict:safe_set("c|" .. number % ring_of(dict), number .. " " .. id)
end


local function touch(self, id)
    if self.touched then
        self.touched[id] = true
    end
end


-- Indexes an entry by its successors and its questions, in place of the ones that it had.
local function name(self, entry, following, asked)
    local function mark(on)
        for ip in pairs(entry.successors and entry.successors.ips or {}) do
            ways.mark(self.named, ip, entry.id, on)
        end
        for key in pairs(entry.ways or {}) do
            ways.mark(self.asked, key, entry.id, on)
        end
    end
    mark(nil)
    entry.successors, entry.ways = following, asked
    mark(entry)
end


local function add(self, id)
    touch(self, id)
    local uid, ip, port = str_match(id, "^([^|]+)|([^|]+)|(%d*)$")
    local entry = { id = id, uid = uid, ip = ip, port = tonumber(port) }
    self.by_id[id] = entry
    self.n = self.n + 1
    ways.mark(self.by_uid, uid, id, entry)
    self.ips[ip] = self.ips[ip] or {}
    self.ips[ip][#self.ips[ip] + 1] = entry
    return entry
end


local function drop(self, entry)
    touch(self, entry.id)
    name(self, entry, nil)
    self.by_id[entry.id] = nil
    self.n = self.n - 1
    ways.mark(self.by_uid, entry.uid, entry.id, nil)
    local same = self.ips[entry.ip]
    for i, other in ipairs(same) do
        if other == entry then
            remove(same, i)
            break
        end
    end
    if #same == 0 then
        self.ips[entry.ip] = nil
    end
end


-- Copies one entry from the dictionary.
-- @tparam number|nil number of the change that concerns it
local function refresh(self, id, now, number)
    local dict, entry = self.dict, self.by_id[id]
    local till = dict:get("e|" .. id)
    if not till or till <= now then
        if entry then
            drop(self, entry)
        end
        self.over[id] = till
        return
    end
    entry = entry or add(self, id)
    entry.expires, entry.sealed = till, dict:get("s|" .. id) == true
    name(self, entry, successors.parse(dict:get("n|" .. id)), ways.parse(dict:get("w|" .. id)))
    if number then
        entry.since = number
        touch(self, id)
    end
    self.expires = min(self.expires, till)
end


local function load(self, now, gen)
    for id in pairs(self.by_id) do
        touch(self, id)
    end
    self.by_id, self.by_uid, self.ips, self.named, self.asked = {}, {}, {}, {}, {}
    self.n, self.expires = 0, huge
    for _, key in ipairs(self.dict:get_keys(0)) do
        if str_sub(key, 1, 2) == "e|" then
            refresh(self, str_sub(key, 3), now, gen)
        end
    end
end


-- Applies the changes after number `after`, up to `upto`. @treturn boolean whether all are known
local function follow(self, after, upto, now)
    if after < 0 or upto < after or upto - after > self.ring then
        return false
    end
    for number = after + 1, upto do
        local change = self.dict:get("c|" .. number % self.ring) or ""
        local at, id = str_match(change, "^(%d+) (.+)$")
        if tonumber(at) ~= number then
            return false
        end
        refresh(self, id, now, number)
    end
    return true
end


-- Reads entries that are about to expire, because workers are not notified of renewals.
local function renew(self, now)
    local soon, expires = now + TOGETHER, huge
    for id, entry in pairs(self.by_id) do
        if entry.expires < soon then
            refresh(self, id, now)
        end
        if self.by_id[id] then
            expires = min(expires, entry.expires)
        end
    end
    self.expires = expires
end


local function bring_up(self, gen)
    local now = clock_now()
    if gen ~= self.set.gen and not follow(self, self.set.gen, gen, now) then
        load(self, now, gen)
    end
    if now >= self.expires then
        renew(self, now)
    end
    -- a new table: results that were derived from the old one are void
    self.set = { gen = gen, n = self.n, ips = self.ips, expires = self.expires }
    return self.set
end


--- The deny-list as it is now.
-- @treturn table { gen, n, ips, expires }; it is the same table for as long as nothing changes
function _M:current()
    local set = self.set
    -- `gen` is read before the entries: a change in between is applied twice, but never missed
    local gen = self.dict:get("gen") or 0
    if gen == set.gen and (set.n == 0 or clock_now() < set.expires) then
        return set
    end
    return bring_up(self, gen)
end


--- The state of an address in a set.
-- @treturn string|nil "sealed", "draining" or nil
function _M.level(set, addr)
    local same = set.ips[addr.ip]
    if not same then
        return nil
    end

    local level
    for i = 1, #same do
        local entry = same[i]
        if not entry.port or entry.port == addr.port then
            if entry.sealed then
                return "sealed"
            end
            level = "draining"
        end
    end
    return level
end


--- The id of an entry that has expired and may still be in the dictionary, or nil. Returns each
-- id once.
function _M:expired()
    local id = next(self.over)
    if id then
        self.over[id] = nil
    end
    return id
end


return _M
