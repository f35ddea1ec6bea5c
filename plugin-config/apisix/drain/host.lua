--- What the plugin needs from LuaJIT and the C library: a clock, addresses, and memory that all
-- processes of this nginx share. This file, process.lua and wake.lua are the room `host`: only they
-- use ffi. The sandbox has the same functions in a Lua without ffi (sandbox/apisix/vm/).
local ffi      = require("ffi")
local bit      = require("bit")
local jit      = jit
local C        = ffi.C
local tonumber = tonumber
local str_find = string.find

-- clock_gettime has a name of its own: another module may have declared it with other types
ffi.cdef([[
    int inet_pton(int af, const char *src, void *dst);
    const char *inet_ntop(int af, const void *src, char *dst, unsigned int size);
    int apisix_drain_clock(int id, void *at) __asm__("clock_gettime");
    void *mmap(void *addr, size_t length, int prot, int flags, int fd, long offset);
]])

local IS_LINUX  = ffi.os == "Linux"
local AF_INET   = 2
local AF_INET6  = IS_LINUX and 10 or 30
local MONOTONIC = IS_LINUX and 1 or 6
local at        = ffi.new("long[2]")
local raw       = ffi.new("unsigned char[16]")
local text      = ffi.new("char[64]")

local READ_WRITE = 3
-- MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE of Linux: a page costs nothing before the first write
local SHARED     = 0x1 + 0x20 + 0x4000
local HAS_MEMORY = IS_LINUX and (jit.arch == "x64" or jit.arch == "arm64")

-- Two cells are also one 64-bit number, with the second cell in its upper half (x64 and arm64 are
-- little endian). One operation reads or moves it, so no reader misses a request.
local LOW  = 0xffffffffLL
local MOVE = 0x100000000LL - 1

local _M = {}
local pairs_of


--- Seconds since some moment in the past, by a clock that does not step, the same in all
-- processes. ngx.now and the expiry of ngx.shared use the wall clock: after a step of that clock,
-- entries would end too early or stay for hours. Times in answers come from ngx.now.
function _M.now()
    C.apisix_drain_clock(MONOTONIC, at)
    return tonumber(at[0]) + tonumber(at[1]) / 1e9
end


--- The canonical form of an IP address; nil if it is not one.
function _M.canonical(ip)
    if #ip > 45 or str_find(ip, "%z") then
        return nil
    end

    local family = str_find(ip, ":", 1, true) and AF_INET6 or AF_INET
    if C.inet_pton(family, ip, raw) ~= 1 then
        return nil
    end
    return ffi.string(C.inet_ntop(family, raw, text, 64))
end


--- Maps memory for whole numbers, or finds the memory that the master has mapped already.
-- @tparam table dict the counts: they live as long as the master, and hold the address for the next
--   configuration
-- @tparam string key of the address in the dictionary
-- @tparam number n how many cells
-- @treturn cdata|nil the cells, from 0
function _M.memory(dict, key, n)
    local pointer = HAS_MEMORY and dict:get(key)
    if pointer then
        pointer = ffi.cast("void *", pointer)
    elseif HAS_MEMORY then
        pointer = C.mmap(nil, n * 4, READ_WRITE, SHARED, -1, 0)
        -- an address of user space is below 2^53 on these processors, so a number holds it exactly
        local address = tonumber(ffi.cast("intptr_t", pointer))
        if address == -1 or not dict:safe_set(key, address) then
            return nil
        end
    else
        return nil
    end
    pairs_of = ffi.cast("int64_t *", pointer)
    return ffi.cast("int32_t *", pointer)
end


--- Sets cells to 0.
function _M.clear(cells, first, n)
    ffi.fill(cells + first, n * 4)
end


--- A cell (of an even place) and the next one, read at one moment.
function _M.both(_, place)
    local both = pairs_of[place / 2]
    return tonumber(bit.band(both, LOW)), tonumber(bit.rshift(both, 32))
end


--- Moves 1 from a cell (of an even place) to the next one, at one moment.
function _M.move(_, place)
    pairs_of[place / 2] = pairs_of[place / 2] + MOVE
end


return _M
