--- Counters in memory that all processes of this nginx share. A change takes a few nanoseconds; in
-- a dictionary it takes a lock, a hash and a search. Every process has a slice that only it writes.
--
-- The module hook maps the memory: it runs in the master, before nginx forks workers. The master
-- keeps it across a reload, at the same address. The dictionary lives as long as the master, and
-- holds the address for the next configuration. Why a plain write here is enough:
-- docs/decisions/0009.
local host = require("apisix.drain.host")
local ngx  = ngx
local format = string.format
local both, move = host.both, host.move

local SLOTS  = 512              -- as many as workers.register gives
local EACH   = 6                -- cells of one counter
local CELLS  = 8192 * EACH      -- per slice

-- The cells of one counter: ordinary requests, long-lived requests (host.both and host.move reach
-- these two at one moment), and how many of the latter are upgraded or SSE. The next cell has the
-- second in which the oldest long-lived request began.
local LONG, OLDEST = 1, 4
local OF_KIND = { stream = LONG, upgraded = 2, sse = 3 }

-- Increase LAYOUT with every change of the data that workers share: these counters, or the keys of
-- inflight.lua, totals.lua and entry.lua. After a reload, workers of a new version can run
-- next to workers of an old one.
local LAYOUT = 3
local KEY    = "cells|" .. LAYOUT
-- a release that stores its entries in another way cannot read the old ones
local INSTANCE = "instance|" .. LAYOUT

local MISSING = "the memory for counts could not be mapped: the plugin needs Linux on x64 or arm64,"
                .. " and apisix.lua_module_hook: apisix.drain.hook"

local _M = { LAYOUT = LAYOUT }
local mt = { __index = _M }

local memory


--- Maps the memory, or finds it. Call it only in init_by_lua: a process that is forked later
-- inherits the memory with this module.
-- @tparam table|nil dict the counts
function _M.prepare(dict)
    if dict and ngx.get_phase() == "init" then
        memory = host.memory(dict, KEY, SLOTS * CELLS)
    end
end


--- The counters of one process.
-- @tparam number slot its slot, which no other living process has
-- @treturn table|nil
-- @treturn string|nil why not
function _M.slice(slot)
    if not memory then
        return nil, MISSING
    end
    local first = (slot - 1) * CELLS
    -- clears the counts of the process that had the slot before
    host.clear(memory, first, CELLS)
    return setmetatable({
        cells = memory, next = first, last = first + CELLS - EACH, free = {},
    }, mt)
end


--- The counts of any process at a position.
-- @treturn number|nil ordinary requests, nil if this process does not have the memory
-- @treturn number|nil long-lived ones
-- @treturn number|nil of these, the upgraded ones
-- @treturn number|nil of these, the SSE ones
-- @treturn number|nil when the oldest long-lived one began, in seconds; 0: not known yet
function _M.read(place)
    if not memory then
        return nil
    end
    local requests, long = both(memory, place)
    return requests, long, memory[place + OF_KIND.upgraded], memory[place + OF_KIND.sse],
           memory[place + OLDEST]
end


--- Reserves a counter.
-- @treturn number|nil its position; nil if the slice is full
function _M:make()
    local free = self.free
    local at = free[#free]
    if at then
        free[#free] = nil
        return at
    end
    if self.next >= self.last then
        return nil
    end
    self.next = self.next + EACH
    return self.next
end


function _M:give_back(at)
    self.free[#self.free + 1] = at
end


--- @tparam number n may be negative
function _M:add(at, n)
    local cells = self.cells
    cells[at] = cells[at] + n
end


function _M:get(at)
    return self.cells[at]
end


--- The number of long-lived requests of one kind in a counter.
function _M:of_kind(at, kind)
    local cells = self.cells
    if kind == "stream" then
        return cells[at + LONG] - cells[at + OF_KIND.upgraded] - cells[at + OF_KIND.sse]
    end
    return cells[at + OF_KIND[kind]]
end


--- Changes the number of long-lived requests of one kind. The sum must never be smaller than its
-- kinds, so it changes first on the way up, and last on the way down.
function _M:add_long(at, kind, n)
    local cells, cell = self.cells, OF_KIND[kind]
    if n > 0 then
        cells[at + LONG] = cells[at + LONG] + n
    end
    if cell ~= LONG then
        cells[at + cell] = cells[at + cell] + n
    end
    if n < 0 then
        cells[at + LONG] = cells[at + LONG] + n
    end
end


--- Moves one request from the ordinary ones to the long-lived ones.
function _M:lengthen(at, kind)
    move(self.cells, at)
    local cells, cell = self.cells, OF_KIND[kind]
    if cell ~= LONG then
        cells[at + cell] = cells[at + cell] + 1
    end
end


--- @tparam number second when the oldest long-lived request began; 0: there is none
function _M:set_oldest(at, second)
    self.cells[at + OLDEST] = second
end


local function random_id()
    local file = io.open("/dev/urandom", "rb")
    local bytes = file and file:read(16)
    if file then
        file:close()
    end
    if not bytes then
        return format("%x%x", ngx.worker.pid(), ngx.now() * 1000)
    end
    return (bytes:gsub(".", function(c) return format("%02x", c:byte()) end))
end


--- The identity of a deny-list, which is made if the dictionary has none. The dictionary of the
-- list stores it, so it survives a reload, but no restart. After a reload that resizes the
-- dictionary, the new workers have a new dictionary and a new identity; the old workers keep
-- theirs.
-- @tparam table dict the dictionary of the deny-list
function _M.instance(dict)
    local id = dict:get(INSTANCE)
    if not id then
        dict:safe_add(INSTANCE, random_id())
        id = dict:get(INSTANCE)
    end
    return id
end


--- Identifies the workers that share this deny-list and this way of counting.
function _M.shared(dict)
    return _M.instance(dict) .. " " .. LAYOUT
end


return _M
