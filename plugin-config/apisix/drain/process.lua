--- Is a process still there? A pid alone is not enough, because another process can get the same
-- pid. So the start time is stored too (in clock ticks since boot, field 22 of /proc/<pid>/stat).
local ffi       = require("ffi")
local bit       = require("bit")
local ngx       = ngx
local C         = ffi.C
local io_open   = io.open
local str_match = string.match
local str_gmatch = string.gmatch
local tonumber  = tonumber

ffi.cdef("int kill(int pid, int sig); int getppid(void);")

local ESRCH      = 3
-- from include/linux/sched.h: the process has executed no program since it was forked
local FORKNOEXEC = 0x40
-- field 9 of /proc/<pid>/stat
local FLAGS      = "^.*%) %S" .. (" %S+"):rep(5) .. " (%d+)"

local _M = {}


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
