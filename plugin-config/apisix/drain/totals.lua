--- The requests in flight of all workers together. Any worker can read them: the keys and the
-- memory are those of inflight.lua.
local cells_mod = require("apisix.drain.cells")
local ports_mod = require("apisix.drain.ports")
local ipairs    = ipairs
local str_sub   = string.sub
local floor     = math.floor
local max       = math.max
local min       = math.min

local PORTS = ports_mod.PORTS

local _M = {}


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


return _M
