--- Counters in a shared dictionary, used without cells (cells.lua); the functions are the same.
--
--   r|worker|ip|port   ordinary requests        l|worker|ip|port   long-lived ones
local setmetatable = setmetatable
local str_sub      = string.sub

local _M = {}
local mt = { __index = _M }


function _M.new(dict, worker)
    return setmetatable({ dict = dict, worker = worker }, mt)
end


--- What a worker counts for an address.
-- @treturn number ordinary requests
-- @treturn number long-lived ones
function _M.read(dict, worker, ip, port)
    local rest = "|" .. worker .. "|" .. ip .. "|" .. port
    return dict:get("r" .. rest) or 0, dict:get("l" .. rest) or 0
end


function _M:make(addr)
    local key = "r|" .. self.worker .. "|" .. addr.id
    local ok, err = self.dict:safe_add(key, 0)
    return (ok or err == "exists") and key or nil
end


function _M:give_back(key)
    self.dict:delete(key)
    self.dict:delete("l" .. str_sub(key, 2))
end


function _M:add(key, n)
    return self.dict:incr(key, n)
end


function _M:get(key)
    return self.dict:get(key) or 0
end


function _M:long(key)
    local long = "l" .. str_sub(key, 2)
    self.dict:safe_add(long, 0)
    return long
end


--- Moves one request to the counter for long-lived ones. It counts up before it counts down, so no
-- reader misses the request. @treturn string|nil that counter; nil if there is no room for it
function _M:lengthen(key)
    local long = self:long(key)
    if not self:add(long, 1) then
        return nil
    end
    self:add(key, -1)
    return long
end


return _M
