--- Counters in a shared dictionary, used without cells (cells.lua); the functions are the same.
--
--   r|worker|ip|port   ordinary requests        l|worker|ip|port   long-lived ones, and of these
--   g|worker|ip|port   the upgraded ones        e|worker|ip|port   the SSE ones
--   b|worker|ip|port   the second in which the oldest long-lived one began
local setmetatable = setmetatable
local ipairs       = ipairs
local str_sub      = string.sub

local OF_KIND = { stream = "l", upgraded = "g", sse = "e" }

-- a port and the place of its counter are kept as one number: port + PORTS * place
local _M = { PORTS = 65536 }
local mt = { __index = _M }


function _M.new(dict, worker)
    return setmetatable({ dict = dict, worker = worker }, mt)
end


--- A worker's counts for an address: the same values as cells.read.
function _M.read(dict, worker, ip, port)
    local rest = "|" .. worker .. "|" .. ip .. "|" .. port
    return dict:get("r" .. rest) or 0, dict:get("l" .. rest) or 0,
           dict:get("g" .. rest) or 0, dict:get("e" .. rest) or 0, dict:get("b" .. rest) or 0
end


function _M:make(addr)
    local key = "r|" .. self.worker .. "|" .. addr.id
    local ok, err = self.dict:safe_add(key, 0)
    return (ok or err == "exists") and key or nil
end


function _M:give_back(key)
    local rest = str_sub(key, 2)
    self.dict:delete(key)
    for _, mark in ipairs({ "l", "g", "e", "b" }) do
        self.dict:delete(mark .. rest)
    end
end


function _M:add(key, n)
    return self.dict:incr(key, n)
end


function _M:get(key)
    return self.dict:get(key) or 0
end


function _M:of_kind(key, kind)
    local dict, rest = self.dict, str_sub(key, 2)
    local n = dict:get(OF_KIND[kind] .. rest) or 0
    if kind == "stream" then
        return n - (dict:get("g" .. rest) or 0) - (dict:get("e" .. rest) or 0)
    end
    return n
end


-- The kinds only split the sum: if there is no room for a kind, its requests count as streams.
function _M:add_long(key, kind, n)
    local dict, rest = self.dict, str_sub(key, 2)
    if kind ~= "stream" and dict:get(OF_KIND[kind] .. rest) then
        dict:incr(OF_KIND[kind] .. rest, n)
    end
    dict:incr("l" .. rest, n)
end


--- Moves one request to the long-lived ones. It counts up before it counts down, so no
-- reader misses the request.
-- @treturn boolean false if there is no room: the request then stays an ordinary one
function _M:lengthen(key, kind)
    local dict, rest = self.dict, str_sub(key, 2)
    dict:safe_add("l" .. rest, 0)
    if not dict:incr("l" .. rest, 1) then
        return false
    end
    if kind ~= "stream" then
        dict:safe_add(OF_KIND[kind] .. rest, 0)
        dict:incr(OF_KIND[kind] .. rest, 1)
    end
    self:add(key, -1)
    return true
end


function _M:set_oldest(key, second)
    local begun = "b" .. str_sub(key, 2)
    if second ~= 0 then
        self.dict:safe_set(begun, second)
    elseif self.dict:get(begun) then
        self.dict:delete(begun)
    end
end


return _M
