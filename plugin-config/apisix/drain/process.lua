--- Is a process still there? A pid alone is not enough: it can be given to another process, so
-- the time it was started (in clock ticks since boot, field 22 of /proc/<pid>/stat) is kept too.
local ffi       = require("ffi")
local C         = ffi.C
local io_open   = io.open
local str_match = string.match
local str_gmatch = string.gmatch
local tonumber  = tonumber

ffi.cdef("int kill(int pid, int sig);")

local ESRCH = 3
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


--- What belongs to this process's nginx, by what the master has started (Linux:
-- /proc/<pid>/task/<tid>/children) and by the titles nginx gives. Nothing where /proc says nothing.
-- @treturn table pids of its workers, those of an earlier configuration too
-- @treturn boolean is there a second master with the same sockets (binary upgrade, USR2)? The new
--   one is a child of the old one
function _M.family()
    local master, pids = parent_of("self"), {}
    local second = role_of(parent_of(master)) == "master"
    local children = read("/proc/" .. master .. "/task/" .. master .. "/children")
    for pid in str_gmatch(children, "%d+") do
        local role = role_of(pid)
        if role == "worker" then
            pids[#pids + 1] = tonumber(pid)
        elseif role == "master" then
            second = true
        end
    end
    return pids, second
end


--- When a process was started, as text that only this process has; "" where /proc says nothing.
function _M.started(pid)
    local _, start = stat(pid)
    return start or ""
end


--- Does the process that was registered with this pid and start still exist? A stopped one does,
-- one that is only waiting to be reaped does not. In doubt it does: then its counts still matter.
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
