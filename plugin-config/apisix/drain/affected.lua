--- The entries whose statements in this worker's word may have changed: an entry that came or went,
-- or that is in a place that came, went or has other nodes. An entry that shares a place with such
-- an entry is affected too.
local ways_mod     = require("apisix.drain.ways")
local str_match    = string.match

local NONE = {}
local _M = {}
local mt = { __index = _M }


--- @tparam table entries
function _M.new(entries)
    return setmetatable({
        entries = entries,
        dirty = {},     -- { [entry id] = true }
        followed = {},  -- { [entry id] = the successors that its line names }
    }, mt)
end


local change_all


-- Marks an entry as changed, and the entries of its successors, since they are in its places.
local function change(self, entry, seen)
    if seen[entry.id] then
        return
    end
    seen[entry.id], self.dirty[entry.id] = true, true
    change_all(self, entry.successors, seen)
    change_all(self, self.followed[entry.id], seen)
end


function change_all(self, following, seen)
    for ip in pairs(following and following.ips or NONE) do
        for _, entry in ipairs(self.entries.set.ips[ip] or NONE) do
            change(self, entry, seen)
        end
    end
end


--- Marks all entries with one of these addresses as changed.
function _M:touch(nodes, seen)
    local ips = self.entries.set.ips
    for _, node in ipairs(nodes) do
        for _, entry in ipairs(ips[node.ip] or NONE) do
            change(self, entry, seen)
        end
    end
end


--- A place with these nodes came or went: entries that ask about one have another answer, too.
function _M:moved(nodes)
    local asked, dirty = self.entries.copy.asked, self.dirty
    self:touch(nodes, {})
    ways_mod.each(next(asked) and nodes or NONE, function(node)
        for id in pairs(asked[node.ip] or NONE) do
            dirty[id] = true
        end
        for id in pairs(asked[node.port] or NONE) do
            dirty[id] = true
        end
    end)
end


--- The addresses that can lead a request to this address: itself, and those of the entries that
-- name it as a successor, over any number of steps.
function _M:ways_to(ip, ways)
    ways = ways or {}
    ways[ip] = true
    for _, entry in pairs(self.entries:naming(ip)) do
        if not ways[entry.ip] then
            self:ways_to(entry.ip, ways)
        end
    end
    return ways
end


--- Takes in the changes of the deny-list.
-- @tparam table places
-- @treturn number its generation
function _M:follow(places)
    local gen, touched, seen = self.entries:current().gen, self.entries:touched(), {}
    for id in pairs(touched) do
        local entry = self.entries:held_as(id)
        self.dirty[id] = true
        if entry then
            change(self, entry, seen)
        else
            change_all(self, self.followed[id], seen)
        end
        for ip in pairs(self:ways_to(str_match(id, "|(.*)|"))) do
            for place in pairs(places:of(ip)) do
                if not seen[place] then
                    seen[place] = true
                    self:touch(place.list, seen)
                    places.rest()
                end
            end
        end
    end
    return gen
end


return _M
