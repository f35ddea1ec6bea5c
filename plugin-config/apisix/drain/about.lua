--- What there is to say about one entry of the deny-list, place by place.
local level_of  = require("apisix.drain.entries").level
local setmetatable = setmetatable
local ipairs    = ipairs
local pairs     = pairs
local concat    = table.concat
local str_find  = string.find
local sort      = table.sort
local insert    = table.insert
local min       = math.min

-- so many other choices are named of a place, so many different lists of them of an entry, and so
-- many places by name
local OTHERS, LISTS, NAMES = 8, 16, 16
-- to look at so many nodes takes less than requests may wait
local MANY = 100

local _M = { LISTS = LISTS, NAMES = NAMES }
local mt = { __index = _M }


--- @tparam table entry { ip, port }
-- @tparam function set the deny-list as it is at this moment
-- @tparam function rest lets requests pass, if it is time
function _M.new(entry, set, rest)
    return setmetatable({
        entry = entry, set = set, rest = rest, places = 0, sole = {}, others = {},
    }, mt)
end


-- "address:port", kept with the node
local function name_of(node)
    if not node.name then
        local ip = str_find(node.ip, ":", 1, true) and "[" .. node.ip .. "]" or node.ip
        node.name = node.port and ip .. ":" .. node.port or ip
    end
    return node.name
end


-- The first names in their order: a map of nodes has another order in each worker.
local function keep(free, name)
    local at = #free + 1
    while at > 1 and free[at - 1] > name do
        at = at - 1
    end
    if at <= OTHERS then
        insert(free, at, name)
        free[OTHERS + 1] = nil
    end
end


-- The other choices of a place: "more/address:port,…", in an order of their own, so that places
-- with the same ones are the same; nil where there is none.
-- @tparam boolean standby the nodes of weight 0, which are chosen only where there is no other
local function free_of(self, list, standby)
    local free, more = {}, 0
    for i, node in ipairs(list) do
        if (node.standby or false) == standby and not level_of(self.set(), node) then
            if #free == OTHERS then
                more = more + 1
            end
            keep(free, name_of(node))
        end
        if i % MANY == 0 then
            self.rest()
        end
    end
    if #free == 0 then
        return nil
    end
    return more .. "/" .. concat(free, ",")
end


local function covers(entry, list)
    for _, node in ipairs(list) do
        if node.ip == entry.ip and (not entry.port or entry.port == node.port) then
            return true
        end
    end
    return false
end


--- Adds a place, once, however many of its nodes the entry covers.
-- @tparam string name of the place, of letters that text can keep apart
-- @tparam table list its nodes, { ip, port } each
function _M:add(name, list)
    if not covers(self.entry, list) then
        return
    end
    self.places = self.places + 1
    local free = free_of(self, list, false) or free_of(self, list, true)
    if free then
        self.others[free] = (self.others[free] or 0) + 1
    else
        self.sole[#self.sole + 1] = name
    end
end


--- As one line: "places cut sole;… n/more/address:port,…;…", where `cut` places are left out. Two
-- workers leave out the same ones.
function _M:text()
    local lists, kept, cut = {}, {}, 0
    for free in pairs(self.others) do
        lists[#lists + 1] = free
    end
    sort(lists)
    for i, free in ipairs(lists) do
        if i > LISTS then
            cut = cut + self.others[free]
        else
            kept[i] = self.others[free] .. "/" .. free
        end
    end
    sort(self.sole)
    return self.places .. " " .. cut .. " " .. concat(self.sole, ";", 1, min(#self.sole, NAMES))
           .. " " .. concat(kept, ";")
end


return _M
