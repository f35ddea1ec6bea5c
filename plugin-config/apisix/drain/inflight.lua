--- Requests in flight, counted per worker and address in a shared dictionary of its own.
--
--   r|worker|ip|port   ordinary requests        l|worker|ip|port   upgraded connections
--   p|worker|ip|1 ..   the ports that have counters, one number each (0: free again), no gaps
--   o|worker           requests that could not be counted on their own key (dictionary full)
--
-- `worker` is a number that no two processes ever share, so the counts of a process that died
-- are left out by leaving out its number. An `o` count is part of every address: what is not
-- known where to belong must not make anything look idle.
local setmetatable = setmetatable
local pairs        = pairs
local ipairs       = ipairs
local str_sub      = string.sub
local str_byte     = string.byte

local BYTE_R = str_byte("r")

local _M = {}
local mt = { __index = _M }


--- @tparam table dict an ngx.shared dictionary that only counts use
-- @tparam number worker the number of this process
-- @treturn table|nil counter
-- @treturn string|nil error
function _M.new(dict, worker)
    local overflow = "o|" .. worker
    local ok, err = dict:safe_set(overflow, 0)
    if not ok then
        return nil, "failed to reserve a counter: " .. err
    end

    return setmetatable({
        dict     = dict,
        worker   = worker,
        overflow = overflow,
        ports    = {},
        opened   = {},
        -- the key that each living request holds, by its api_ctx. APISIX gives that table back to
        -- a pool at the end of its log phase, and ours comes before that; where no log phase comes
        -- (nginx forgets ngx.ctx on an internal redirect: error_page into another location) it is
        -- garbage when the request is, and the entry here goes with it
        held     = setmetatable({}, { __mode = "k" }),
    }, mt)
end


-- Where the port of an address is listed. A number takes the place of a number, so an index that
-- exists can not be lost to a full dictionary.
local function index(self, ip, port)
    local ports = self.ports[ip]
    if not ports then
        ports = { n = 0 }
        self.ports[ip] = ports
    end
    if ports[port] then
        return true
    end

    local at = ports.n + 1
    for i = 1, ports.n do
        if ports[-i] == 0 then
            at = i
            break
        end
    end
    if not self.dict:safe_set("p|" .. self.worker .. "|" .. ip .. "|" .. at, port) then
        return false
    end
    ports.n = at > ports.n and at or ports.n
    ports[port], ports[-at] = at, port
    return true
end


local function unindex(self, ip, port)
    local ports = self.ports[ip]
    local at = ports and ports[port]
    if at then
        ports[port], ports[-at] = nil, 0
        self.dict:safe_set("p|" .. self.worker .. "|" .. ip .. "|" .. at, 0)
    end
end


-- Makes the counter of an address. The index is written before the first count: a reader that
-- misses the index has read it before, and then this request sees the reader's entry.
local function open(self, addr)
    if not index(self, addr.ip, addr.port) then
        return nil
    end

    local key = "r|" .. self.worker .. "|" .. addr.id
    local ok, err = self.dict:safe_add(key, 0)
    if not ok and err ~= "exists" then
        return nil
    end
    addr.counter, addr.owner = key, self
    self.opened[key] = addr
    return key
end


--- Counts a request up on an address.
-- @tparam table addr from address.of
-- @tparam table holder the request's api_ctx
function _M:enter(addr, holder)
    local key = addr.owner == self and addr.counter or open(self, addr)
    if not key or not self.dict:incr(key, 1) then
        key = key and open(self, addr)
        if not key or not self.dict:incr(key, 1) then
            key = self.overflow
            self.dict:incr(key, 1)
        end
    end

    addr.hot = true
    self.held[holder] = key
end


--- Counts a request down. Safe to call at any time, any number of times.
-- @treturn table|nil the address it was counted on, where that is known
function _M:leave(holder)
    local key = self.held[holder]
    if not key then
        return nil
    end
    self.held[holder] = nil
    self.dict:incr(key, -1)
    return self.opened[key]
end


--- An ordinary request became a long-lived one. Up before down: it is never in neither.
function _M:lengthen(holder)
    local key = self.held[holder]
    if not key or str_byte(key, 1) ~= BYTE_R then
        return
    end

    local long = "l" .. str_sub(key, 2)
    self.dict:safe_add(long, 0)
    if self.dict:incr(long, 1) then
        self.held[holder] = long
        self.dict:incr(key, -1)
    end
end


--- Gives back what requests held that ended without a log phase. Counts only ever go down to
-- what living requests hold; nothing runs in between, this is one worker in one go.
-- @treturn number how many were given back
function _M:reconcile()
    local living, lost = {}, 0
    for _, key in pairs(self.held) do
        living[key] = (living[key] or 0) + 1
    end

    local function settle(key)
        local extra = (self.dict:get(key) or 0) - (living[key] or 0)
        if extra > 0 then
            self.dict:incr(key, -extra)
            lost = lost + extra
        end
    end

    settle(self.overflow)
    for key in pairs(self.opened) do
        settle(key)
        settle("l" .. str_sub(key, 2))
    end
    return lost
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
    self.ports[ip] = nil
end


--- Removes own counters that are zero and were not used since the last call: bounded memory.
function _M:sweep()
    local dict, stale = self.dict, {}
    for key, addr in pairs(self.opened) do
        local long = "l" .. str_sub(key, 2)
        if addr.hot then
            addr.hot = false
        elseif dict:get(key) == 0 and (dict:get(long) or 0) == 0 then
            stale[#stale + 1] = key
        end
    end

    for _, key in ipairs(stale) do
        local addr = self.opened[key]
        self.opened[key] = nil
        addr.owner, addr.counter = nil, nil
        dict:delete(key)
        dict:delete("l" .. str_sub(key, 2))
        unindex(self, addr.ip, addr.port)
    end
    for ip, ports in pairs(self.ports) do
        forget_unused(self, ip, ports)
    end
    return #stale
end


local function add(dict, worker, ip, port, sum)
    local rest = "|" .. worker .. "|" .. ip .. "|" .. port
    sum.requests = sum.requests + (dict:get("r" .. rest) or 0)
    sum.long = sum.long + (dict:get("l" .. rest) or 0)
end


--- What these workers have in flight to an address.
-- @tparam table dict the counts
-- @tparam table workers numbers of the processes that live
-- @tparam string ip canonical
-- @tparam number|nil port nil for every port
-- @treturn table { requests, long }
function _M.read(dict, workers, ip, port)
    local sum = { requests = 0, long = 0 }
    for _, worker in ipairs(workers) do
        sum.requests = sum.requests + (dict:get("o|" .. worker) or 0)
        if port then
            add(dict, worker, ip, port, sum)
        else
            local at = 1
            local each = dict:get("p|" .. worker .. "|" .. ip .. "|1")
            while each do
                if each ~= 0 then
                    add(dict, worker, ip, each, sum)
                end
                at = at + 1
                each = dict:get("p|" .. worker .. "|" .. ip .. "|" .. at)
            end
        end
    end
    return sum
end


--- Removes everything a dead process left.
function _M.purge(dict, worker)
    local mark = "|" .. worker .. "|"
    for _, key in ipairs(dict:get_keys(0)) do
        if str_sub(key, 2, #mark + 1) == mark then
            dict:delete(key)
        end
    end
    dict:delete("o|" .. worker)
end


return _M
