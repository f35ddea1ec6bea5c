--- Counters in memory that all processes of this nginx share. A change takes a few nanoseconds; in
-- a dictionary it takes a lock, a hash and a search. Every process has a slice that only it writes.
--
-- The module hook maps the memory: it runs in the master, before nginx forks workers. The master
-- keeps it across a reload, at the same address. The dictionary lives as long as the master, and
-- holds the address for the next configuration. Why a plain write here is enough:
-- docs/decisions/0009.
local ffi      = require("ffi")
local bit      = require("bit")
local jit      = jit
local ngx      = ngx
local tonumber = tonumber
local C        = ffi.C

ffi.cdef("void *mmap(void *addr, size_t length, int prot, int flags, int fd, long offset);")

local READ_WRITE = 3
-- MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE of Linux: a page costs nothing before the first write
local SHARED     = 0x1 + 0x20 + 0x4000
local SUPPORTED  = jit.os == "Linux" and (jit.arch == "x64" or jit.arch == "arm64")

local SLOTS  = 512              -- as many as workers.register gives
local EACH   = 6                -- cells of one counter
local CELLS  = 8192 * EACH      -- per slice
local BYTES  = SLOTS * CELLS * 4

-- The cells of one counter: ordinary requests, long-lived requests, and how many of the latter are
-- upgraded or SSE. The next cell has the second in which the oldest long-lived request began.
local LONG, OLDEST = 1, 4
local OF_KIND = { stream = LONG, upgraded = 2, sse = 3 }

-- Increase LAYOUT with every change of the data that workers share: these counters, or the keys of
-- inflight.lua, ports.lua and entry.lua. After a reload, workers of a new version can run
-- next to workers of an old one.
local LAYOUT = 3
local KEY    = "cells|" .. LAYOUT

-- The first two cells are also one 64-bit number, with the long-lived requests in its upper half
-- (x64 and arm64 are little endian). One operation reads or moves it, so no reader misses a
-- request.
local LOW    = 0xffffffffLL
local MOVE   = 0x100000000LL - 1

local MISSING = "the memory for counts could not be mapped: the plugin needs Linux on x64 or arm64,"
                .. " and apisix.lua_module_hook: apisix.drain.hook"

local _M = { LAYOUT = LAYOUT }
local mt = { __index = _M }

local memory, pairs_of


local function use(pointer)
    memory, pairs_of = ffi.cast("int32_t *", pointer), ffi.cast("int64_t *", pointer)
end


--- Maps the memory, or finds the memory that the master has mapped already. Call it only in
-- init_by_lua: a process that is forked later inherits the memory with this module.
-- @tparam table|nil dict the counts
function _M.prepare(dict)
    if not SUPPORTED or not dict or ngx.get_phase() ~= "init" then
        return
    end

    local known = dict:get(KEY)
    if known then
        use(ffi.cast("void *", known))
        return
    end
    local mapped = C.mmap(nil, BYTES, READ_WRITE, SHARED, -1, 0)
    -- an address of user space is below 2^53 on these processors, so a number holds it exactly
    local address = tonumber(ffi.cast("intptr_t", mapped))
    if address ~= -1 and dict:safe_set(KEY, address) then
        use(mapped)
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
    ffi.fill(memory + first, CELLS * 4)
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
    local both = pairs_of[place / 2]
    return tonumber(bit.band(both, LOW)), tonumber(bit.rshift(both, 32)),
           memory[place + OF_KIND.upgraded], memory[place + OF_KIND.sse], memory[place + OLDEST]
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
    pairs_of[at / 2] = pairs_of[at / 2] + MOVE
    local cells, cell = self.cells, OF_KIND[kind]
    if cell ~= LONG then
        cells[at + cell] = cells[at + cell] + 1
    end
end


--- @tparam number second when the oldest long-lived request began; 0: there is none
function _M:set_oldest(at, second)
    self.cells[at + OLDEST] = second
end


return _M
