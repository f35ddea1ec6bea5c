--- This worker's report about one entry of the deny-list, place by place.
local address   = require("apisix.drain.address")
local level_of  = require("apisix.drain.entries").level
local successors = require("apisix.drain.successors")
local json      = require("apisix.drain.json")
local ways      = require("apisix.drain.ways")
local concat    = table.concat
local sort      = table.sort
local insert    = table.insert
local str_gsub  = string.gsub

-- the most other choices that are named for a place, such lists of an entry, named places and ways
local OTHERS, LISTS, NAMES, WAYS = 8, 16, 16, 64
-- reading this many nodes takes less time than requests may wait
local MANY = 100

-- the choices of places, by the list of their nodes, while the deny-list is `set`
local known = {}

local NONE = {}
local _M = { LISTS = LISTS, NAMES = NAMES, WAYS = WAYS }
local mt = { __index = _M }


--- @tparam table entry { ip, port }
-- @tparam function set returns the deny-list as it is at this moment
-- @tparam function rest yields to requests when that is due
function _M.new(entry, set, rest)
    return setmetatable({
        entry = entry, set = set, rest = rest, places = 0, sole = {}, succeeded = {},
        others = {}, found = {},
    }, mt)
end


-- Returns "address:port", and caches it in the node.
local function name_of(node)
    if not node.name then
        local ip = address.written(node.ip)
        node.name = node.port and ip .. ":" .. node.port or ip
    end
    return node.name
end


-- Keeps the names that sort first, each once, so that all workers keep the same ones.
local function keep(free, name)
    local at = #free + 1
    while at > 1 and free[at - 1] > name do
        at = at - 1
    end
    if at <= OTHERS and free[at - 1] ~= name then
        insert(free, at, name)
        free[OTHERS + 1] = nil
    end
end


-- The other choices of a place as sorted text: "more/address:port,…"; nil if there is none.
-- @tparam boolean standby true: only the standbys (nodes.lua); false: only the other nodes
-- @tparam table found successors, which are choices too
local function free_of(self, list, standby, found)
    local free, more = {}, 0
    for i = 1, #list + #found do
        local node = list[i] or found[i - #list]
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


-- The successors of a place: those that are free, and all of them.
local function next_of(self, list)
    local set, seen, found = self.set(), {}, {}
    for i, node in ipairs(list) do
        successors.add(set, node, level_of, seen, found)
        if i % MANY == 0 then
            self.rest()
            set = self.set()
        end
    end
    local all = {}
    for _, addr in pairs(seen) do
        all[#all + 1] = addr
    end
    return found, all
end


-- The other choices of a place, found once for all of its entries.
-- @treturn table { text = see free_of, nodes = see next_of, succeeded = only successors are left }
local function choices_of(self, list)
    local set = self.set()
    known = known.set == set and known or { set = set }
    local all = known[list]
    if not all then
        local found, nodes = next_of(self, list)
        all = { nodes = nodes, succeeded = found[1] and not free_of(self, list, false, NONE) }
        all.text = free_of(self, list, false, found) or free_of(self, list, true, NONE)
        -- after a pause the deny-list may be another
        known[list] = self.set() == set and all or nil
    end
    return all
end


--- Notes the nodes of a place that a question finds, for each the place that sorts first.
function _M:find(key, way, place)
    ways.each(place.list, function(node)
        if node.ip == key or node.port == key then
            local found = way .. ">" .. name_of(node)
            local first = self.found[found]
            self.found[found] = first and first < place.name and first or place.name
        end
    end, self.rest)
end


--- Adds a place, once. The address is in it if the place lists it, or if it is a successor there.
-- @tparam table place { name, list, past }, the name without the characters that separate names in
--   the text
function _M:add(place)
    local name, list = place.name, place.list
    if place.past then
        return self:find(self.entry.ip, self.entry.ip, place)
    end
    local is_in = covers(self.entry, list)
    local all = choices_of(self, list)
    if not is_in and not covers(self.entry, all.nodes) then
        return
    end
    self.places = self.places + 1
    if all.succeeded then
        self.succeeded[name] = true
    end
    if all.text then
        self.others[all.text] = (self.others[all.text] or 0) + 1
    else
        self.sole[name] = true
    end
end


--- The first `most` keys of a table, sorted; default: all.
function _M.sorted(set, most)
    local list = json.list()
    for key in pairs(set) do
        list[#list + 1] = key
    end
    sort(list)
    for i = #list, (most or #list) + 1, -1 do
        list[i] = nil
    end
    return list
end


-- What the questions have found, as text.
local function found_of(self)
    local found, asked = _M.sorted(self.found), 0
    local more = math.max(0, #found - WAYS)
    for _ in pairs(self.entry.ways or NONE) do
        asked = asked + 1
    end
    for i, way in ipairs(found) do
        found[i] = way .. ">" .. self.found[way]
    end
    return asked .. "/" .. more .. "/" .. concat(found, ";", 1, #found - more)
end


--- The report as one line: "places cut sole;… succeeded;… n/more/address:port,…;…
-- asked/more/way>node>place;…". `cut` counts the places that are left out. All workers leave
-- out the same places. Lists that differ only in their ports become one if there are too many,
-- unless the port tells pods of a host apart.
function _M:text()
    local others, kept, cut = self.others, {}, 0
    local lists = _M.sorted(others)
    if #lists > LISTS and not self.entry.port then
        others = {}
        for free, n in pairs(self.others) do
            local bare = str_gsub(free, ":%d+%f[,%z]", "")
            others[bare] = (others[bare] or 0) + n
        end
        lists = _M.sorted(others)
    end
    for i, free in ipairs(lists) do
        if i > LISTS then
            cut = cut + others[free]
        else
            kept[i] = others[free] .. "/" .. free
        end
    end
    local sole, succeeded = _M.sorted(self.sole, NAMES), _M.sorted(self.succeeded, NAMES)
    return self.places .. " " .. cut .. " " .. concat(sole, ";") .. " "
           .. concat(succeeded, ";") .. " " .. concat(kept, ";") .. " " .. found_of(self)
end


return _M
