--- Wakes the workers of this nginx by a datagram, within a fraction of a millisecond. The socket is
-- bound before nginx forks, so every worker can send from it. A worker sends its number (the hello)
-- to the socket. The worker that reads the hello stores the address of its sender. If the socket is
-- missing, or a datagram is lost, the timer of speaker.lua does the same a little later: no
-- guarantee depends on the socket.
local ffi      = require("ffi")
local C        = ffi.C
local ngx      = ngx
local clock_now = require("apisix.drain.host").now
local ipairs   = ipairs
local pcall    = pcall
local tonumber = tonumber

local SUPPORTED = pcall(ffi.cdef, [[
    int apisix_drain_socket(int, int, int) __asm__("socket");
    int apisix_drain_bind(int, const void *, unsigned) __asm__("bind");
    int apisix_drain_close(int) __asm__("close");
    int apisix_drain_unlink(const char *) __asm__("unlink");
    int apisix_drain_chmod(const char *, unsigned) __asm__("chmod");
    long apisix_drain_recvfrom(int, void *, size_t, int, void *, unsigned *) __asm__("recvfrom");
    long apisix_drain_sendto(int, const void *, size_t, int, const void *, unsigned)
        __asm__("sendto");
]]) and ffi.os == "Linux"

local AF_UNIX, DGRAM, DONTWAIT = 1, 2, 64
local CLOEXEC_NONBLOCK = 0x80000 + 0x800
local ADDRESS, MESSAGE = 110, 32
local ANYONE = 438          -- rw-rw-rw-: the master may be root, and its workers not
-- a datagram ends each receive, even when the worker exits, because nginx would log a time-out
local WAIT = 86400000       -- milliseconds
local HEARD = 1             -- seconds within which a worker must have read the hello

local _M = {}
local buffer, from = ffi.new("char[?]", MESSAGE), ffi.new("char[?]", ADDRESS)
local length = ffi.new("unsigned[1]")


local function bound(path)
    if #path > ADDRESS - 4 then
        return nil
    end
    local fd = C.apisix_drain_socket(AF_UNIX, DGRAM + CLOEXEC_NONBLOCK, 0)
    if fd < 0 then
        return nil
    end
    local address = ffi.new("char[?]", ADDRESS)
    ffi.cast("uint16_t *", address)[0] = AF_UNIX
    ffi.copy(address + 2, path)
    C.apisix_drain_unlink(path)
    if C.apisix_drain_bind(fd, address, 2 + #path + 1) ~= 0 then
        C.apisix_drain_close(fd)
        return nil
    end
    C.apisix_drain_chmod(path, ANYONE)
    return fd
end


--- Binds the socket, or finds the master's socket from before a reload. Only in init.
-- @tparam table|nil dict the counts
function _M.prepare(dict)
    if not SUPPORTED or not dict or ngx.get_phase() ~= "init" then
        return
    end
    _M.fd, _M.path = dict:get("wake|fd"), dict:get("wake|path")
    if _M.fd then
        return
    end
    for _, folder in ipairs({ "logs/", "" }) do
        local path = ngx.config.prefix() .. folder .. "apisix-drain.wake"
        local fd = bound(path)
        if fd and dict:safe_set("wake|path", path) and dict:safe_set("wake|fd", fd) then
            _M.fd, _M.path = fd, path
            return
        end
    end
end


-- Reads the hellos that have arrived, and stores the addresses of their senders.
local function greet(dict)
    while true do
        length[0] = ADDRESS
        local n = tonumber(C.apisix_drain_recvfrom(_M.fd, buffer, MESSAGE, DONTWAIT, from, length))
        if n <= 0 then
            return
        end
        dict:safe_set("wake|" .. ffi.string(buffer, n), ffi.string(from, length[0]))
    end
end


local function listen(dict, number, woken)
    local socket = ngx.socket.udp()
    socket:settimeout(WAIT)
    if not socket:setpeername("unix:" .. _M.path) or not socket:send(tostring(number)) then
        return
    end
    local key, till = "wake|" .. number, clock_now() + HEARD
    greet(dict)
    -- another worker may have read the hello, and be about to store the address
    while not dict:get(key) and clock_now() < till do
        ngx.sleep(0.01)
    end
    _M.own = dict:get(key)
    while _M.own and not ngx.worker.exiting() do
        if socket:receive(MESSAGE) then
            woken()
        end
    end
    dict:delete(key)
end


--- Calls `woken` in this worker whenever another one wakes it.
-- @tparam number number of this process
function _M.listen(dict, number, woken)
    if _M.fd then
        ngx.timer.at(0, function(premature)
            if not premature then
                listen(dict, number, woken)
            end
        end)
    end
end


local function send(to)
    return C.apisix_drain_sendto(_M.fd, "x", 1, DONTWAIT, to, #to) == 1
end


--- Ends listening, for a worker that exits.
function _M.stop()
    if _M.own then
        send(_M.own)
    end
end


--- Wakes processes. @tparam table list of { number }
-- @treturn boolean whether any process could be woken
function _M.wake(dict, list)
    local sent = false
    for _, worker in ipairs(_M.fd and list or {}) do
        local to = dict:get("wake|" .. worker.number)
        sent = (to and send(to)) or sent
    end
    return sent
end


return _M
