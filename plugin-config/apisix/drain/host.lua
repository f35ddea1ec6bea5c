--- What the plugin needs from LuaJIT, the C library and /proc: a clock, addresses, memory that all
-- processes of this nginx share, and these processes. This file and wake.lua are the room `host`:
-- only they use ffi. The sandbox has the same functions in a Lua without ffi (sandbox/apisix/vm/).
local ffi      = require("ffi")
local bit      = require("bit")
local jit      = jit
local ngx      = ngx
local C        = ffi.C
local tonumber = tonumber
local io_open  = io.open
local str_find = string.find
local str_match, str_gmatch = string.match, string.gmatch

-- clock_gettime gets our own name: another module may have declared it with other types
ffi.cdef([[
    int inet_pton(int af, const char *src, void *dst);
    const char *inet_ntop(int af, const void *src, char *dst, unsigned int size);
    int apisix_drain_clock(int id, void *at) __asm__("clock_gettime");
    int kill(int pid, int sig);
    int getppid(void);
    void *mmap(void *addr, size_t length, int prot, int flags, int fd, long offset);
]])

local IS_LINUX  = ffi.os == "Linux"
local AF_INET   = 2
local AF_INET6  = IS_LINUX and 10 or 30
local MONOTONIC = IS_LINUX and 1 or 6
local at        = ffi.new("long[2]")
local raw       = ffi.new("unsigned char[16]")
local written   = ffi.new("char[64]")

local READ_WRITE = 3
-- MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE of Linux: a page costs nothing before the first write
local SHARED     = 0x1 + 0x20 + 0x4000
local HAS_MEMORY = IS_LINUX and (jit.arch == "x64" or jit.arch == "arm64")

-- Two cells are also one 64-bit number, with the second cell in its upper half (x64 and arm64 are
-- little endian). One operation reads or moves it, so no reader misses a request.
local LOW  = 0xffffffffLL
local MOVE = 0x100000000LL - 1

local ESRCH      = 3
-- from include/linux/sched.h: the process has executed no program since it was forked
local FORKNOEXEC = 0x40
-- field 9 of /proc/<pid>/stat
local FLAGS      = "^.*%) %S" .. (" %S+"):rep(5) .. " (%d+)"

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
    return ffi.string(C.inet_ntop(family, raw, written, 64))
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


-- Is a process still there? A pid alone is not enough, because another process can get the same
-- pid. So the start time is stored too (in clock ticks since boot, field 22 of /proc/<pid>/stat).
local function stat(pid)
    local file = io_open("/proc/" .. pid .. "/stat", "r")
    if not file then
        return nil
    end
    local line = file:read("*l")
    file:close()
    if not line then
        return nil
    end

    -- the name (field 2) is in parentheses and may hold anything, also parentheses
    local rest = str_match(line, "^.*%) (.+)$")
    if not rest then
        return nil
    end
    return str_match(rest, "^(%S)"), str_match(rest, "^" .. ("%S+ "):rep(19) .. "(%d+)")
end


local function read(path)
    local file = io_open(path, "r")
    if not file then
        return ""
    end
    local text = file:read("*a")
    file:close()
    return text or ""
end


local function parent_of(pid)
    return str_match(read("/proc/" .. pid .. "/stat"), "^.*%) %S (%d+)") or ""
end


-- The title that nginx gives a process.
local function role_of(pid)
    return str_match(read("/proc/" .. pid .. "/cmdline"), "^nginx: (%a+) process")
end


--- Does this process serve? nginx gives a worker its title after init_worker, in which the plugin
-- registers it, and before its first connection (ngx_worker_process_cycle).
function _M.serves(pid)
    return role_of(pid) == "worker"
end


-- A new worker has the title of its master until its init_worker is over. A second master has
-- executed a program since the fork, so the flag PF_FORKNOEXEC is gone.
local function is_second_master(pid)
    if role_of(pid) ~= "master" then
        return false
    end
    local flags = str_match(read("/proc/" .. pid .. "/stat"), FLAGS)
    return flags ~= nil and bit.band(tonumber(flags), FORKNOEXEC) == 0
end


--- Finds the workers of this process's nginx, by the children of its master (Linux:
-- /proc/<pid>/task/<tid>/children) and by the titles nginx gives.
-- @tparam table known workers to skip, by pid
-- @treturn table|nil pids of other workers that serve; nil if /proc does not show the children
-- @treturn boolean is there a second master with the same sockets (binary upgrade, USR2)? The new
--   master is a child of the old master
function _M.family(known)
    local master, own = C.getppid(), ngx.worker.pid()
    local second = role_of(parent_of(master)) == "master"
    local pids, sees = {}, false
    local children = read("/proc/" .. master .. "/task/" .. master .. "/children")
    for text in str_gmatch(children, "%d+") do
        local pid = tonumber(text)
        sees = sees or pid == own
        if not known[pid] then
            if _M.serves(pid) then
                pids[#pids + 1] = pid
            end
            second = second or is_second_master(pid)
        end
    end
    return sees and pids or nil, second
end


--- When a process was started, as text that only this process has; "" if /proc does not show it.
function _M.started(pid)
    local _, start = stat(pid)
    return start or ""
end


--- Does the process that was registered with this pid and start still exist? A stopped process
-- exists; a process that only waits to be reaped does not. Returns true if /proc does not show the
-- process, because its counts may still matter.
function _M.alive(pid, started)
    if C.kill(pid, 0) ~= 0 and ffi.errno() == ESRCH then
        return false
    end

    local state, start = stat(pid)
    if not state then
        return true
    end
    if state == "Z" or state == "X" then
        return false
    end
    return started == "" or start == started
end


return _M
