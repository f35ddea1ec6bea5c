--- The ports of each IP for which a worker has counters. Other workers read them in the dictionary:
--
--   p|worker|ip|1 ..   one key for each port that has a counter, numbered without gaps. The value
--                      is port + 65536 * place of the counter in cells.lua. 0: no port uses this
--                      key now
local setmetatable = setmetatable
local pairs        = pairs

local PORTS = 65536

local _M = { PORTS = PORTS }
local mt = { __index = _M }


--- @tparam table dict an ngx.shared dictionary that only counts use
-- @tparam number worker the number of this process
function _M.new(dict, worker)
    return setmetatable({ dict = dict, worker = worker, of_ip = {} }, mt)
end


--- Lists the port of an address. Each write replaces a number by a number, so a full
-- dictionary cannot lose an index that exists.
-- @tparam number place of its counter in cells.lua
-- @treturn boolean false if the dictionary is full
function _M:list(addr, place)
    local ip, port = addr.ip, addr.port
    local ports = self.of_ip[ip]
    if not ports then
        ports = { n = 0 }
        self.of_ip[ip] = ports
    end

    local at = ports[port] or ports.n + 1
    for i = 1, ports[port] and 0 or ports.n do
        if ports[-i] == 0 then
            at = i
            break
        end
    end
    local key = "p|" .. self.worker .. "|" .. ip .. "|" .. at
    if not self.dict:safe_set(key, port + PORTS * place) then
        return false
    end
    ports.n = at > ports.n and at or ports.n
    ports[port], ports[-at] = at, port
    return true
end


--- Frees the place of an address in the list, for another port.
function _M:free(addr)
    local ports = self.of_ip[addr.ip]
    local at = ports and ports[addr.port]
    if at then
        ports[addr.port], ports[-at] = nil, 0
        self.dict:safe_set("p|" .. self.worker .. "|" .. addr.ip .. "|" .. at, 0)
    end
end


local function forget_unused(self, ip, ports)
    for i = 1, ports.n do
        if ports[-i] ~= 0 then
            return
        end
    end
    for i = 1, ports.n do
        self.dict:delete("p|" .. self.worker .. "|" .. ip .. "|" .. i)
    end
    self.of_ip[ip] = nil
end


--- Removes the lists of IPs that have no counter left.
function _M:sweep()
    for ip, ports in pairs(self.of_ip) do
        forget_unused(self, ip, ports)
    end
end


return _M
