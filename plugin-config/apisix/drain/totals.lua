--- The requests in flight of all workers together. Any worker can read them: the keys and the
-- memory are those of inflight.lua. The ports of an IP for which a worker has counters:
--
--   p|worker|ip|1 ..   one key for each port that has a counter, numbered without gaps. The value
--                      is port + 65536 * place of the counter in cells.lua. 0: no port uses this
--                      key now
local cells_mod = require("apisix.drain.cells")
local str_sub   = string.sub
local floor     = math.floor
local max       = math.max
local min       = math.min

local PORTS = 65536

local _M = { PORTS = PORTS }
local Ports = {}
local mt = { __index = Ports }


local function count(place, sum)
    local requests, long, upgraded, sse, began = cells_mod.read(place)
    -- `requests` is nil if this process does not have the memory: it must not report 0 then
    sum.requests = sum.requests + (requests or 1)
    if long and long > 0 then
        sum.long = sum.long + long
        sum.upgraded = sum.upgraded + max(0, min(long, upgraded))
        sum.sse = sum.sse + max(0, min(long - upgraded, sse))
        if began > 0 and (sum.began == 0 or began < sum.began) then
            sum.began = began
        end
    end
end


--- The number of requests that these workers could not count on the request's own address. It is
-- part of the count of every address.
-- @treturn number
function _M.unplaced(dict, workers)
    local sum = 0
    for _, worker in ipairs(workers) do
        sum = sum + (dict:get("o|" .. worker) or 0)
    end
    return sum
end


--- Requests that these workers have in flight to an address.
-- @tparam table dict the counts
-- @tparam table workers numbers of the processes that live
-- @tparam number unplaced the result of `unplaced`, read after the entry in question was written
-- @tparam string ip canonical
-- @tparam number|nil port nil for every port
-- @treturn table { requests, long, upgraded, sse, began }. `long` counts long-lived requests of all
--   kinds. `began` is the second in which the oldest of those began; 0: none, or not known
function _M.read(dict, workers, unplaced, ip, port)
    local sum = { requests = unplaced, long = 0, upgraded = 0, sse = 0, began = 0 }
    for _, worker in ipairs(workers) do
        local at = 1
        local listed = dict:get("p|" .. worker .. "|" .. ip .. "|1")
        while listed do
            local each = listed % PORTS
            if listed ~= 0 and (not port or port == each) then
                count(floor(listed / PORTS), sum)
            end
            at = at + 1
            listed = dict:get("p|" .. worker .. "|" .. ip .. "|" .. at)
        end
    end
    return sum
end


--- Removes the `o` count of a dead process, and all its keys that have more parts after the number.
function _M.purge(dict, worker)
    local mark = "|" .. worker .. "|"
    for _, key in ipairs(dict:get_keys(0)) do
        if str_sub(key, 2, #mark + 1) == mark then
            dict:delete(key)
        end
    end
    dict:delete("o|" .. worker)
end


--- The ports of each IP for which this worker has counters.
-- @tparam table dict an ngx.shared dictionary that only counts use
-- @tparam number worker the number of this process
function _M.ports(dict, worker)
    return setmetatable({ dict = dict, worker = worker, of_ip = {} }, mt)
end


--- Lists the port of an address. Each write replaces a number by a number, so a full
-- dictionary cannot lose an index that exists.
-- @tparam number place of its counter in cells.lua
-- @treturn boolean false if the dictionary is full
function Ports:list(addr, place)
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
function Ports:free(addr)
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
function Ports:sweep()
    for ip, ports in pairs(self.of_ip) do
        forget_unused(self, ip, ports)
    end
end


return _M
