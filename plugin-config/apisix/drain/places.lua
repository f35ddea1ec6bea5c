--- The places (nodes.lua) in which this worker could choose an address, in the configuration that
-- it routes by. They are indexed by the address of each node.
--
-- Nodes by service discovery and by name are looked up at intervals. Reading a large configuration
-- takes milliseconds, so the code calls `pause` in between, which must let requests run.
local source   = require("apisix.drain.source")
local nodes_mod = require("apisix.drain.nodes")
local names_mod = require("apisix.drain.names")
local ways = require("apisix.drain.ways")
local clock_now = require("apisix.drain.host").now
local nodes_of = nodes_mod.of
local mark     = ways.mark
local str_sub  = string.sub

-- seconds that requests may wait for this code
local MOST = 0.0002
local NONE = {}
local UNREAD = { discovery_type = "unread" }

local _M = {}
local mt = { __index = _M }


local function part_of(self, ip)
    local ending = str_sub(ip, -2)
    local part = self.by_ip[ending]
    if not part then
        part = {}
        self.by_ip[ending] = part
    end
    return part
end


local function index(self, place, on)
    ways.each(place.list or NONE, function(node)
        mark(part_of(self, node.ip), node.ip, place, on)
        if self.ports[node.port] then
            mark(self.ports, node.port, place, on)
        end
    end, self.rest)
    self.touched(place.list or NONE)
end


local function apply(self, record, on)
    for _, id in ipairs(record.refs) do
        local n = (self.refs[id] or 0) + (on and 1 or -1)
        self.refs[id] = n > 0 and n or nil
        for place in pairs(self.upstreams[id] or NONE) do
            self.touched(place.list or NONE)
        end
    end
    for _, place in ipairs(record.places) do
        self.all[place] = on or nil
        if place.upstream then
            mark(self.upstreams, place.upstream, place, on)
        end
        if place.moves then
            self.moving[place] = on or nil
            self.unseen = self.unseen or on
        end
        index(self, place, on)
    end
end


--- @tparam table with
--   core      apisix.core
--   pause     lets requests run
--   changed   called while APISIX changes an item, before any request can see the change
--   touched   called with the nodes of a place that came or went
--   news      called when a name resolves to something else
function _M.new(with)
    local self = setmetatable({
        names = names_mod.new(with.core, with.news), touched = with.touched,
        -- { [end of the address] = { [ip, or key of a name] = { [place] = true } } }: many small
        -- tables, because growing a large one takes milliseconds
        by_ip = {},
        ports = {},         -- { [port that was asked for] = { [place] = true } }
        all = {},           -- { [place] = true }
        moving = {},        -- { [place] = true }: their nodes have to be looked up
        upstreams = {},     -- { [id] = { [place] = true } }
        refs = {},          -- { [id] = how many items refer to it }
        unseen = false,     -- some of `moving` were never looked up
        rested = 0,
    }, mt)
    --- Yields to requests when that is due.
    function self.rest()
        if clock_now() - self.rested >= MOST then
            with.pause()
            self.rested = clock_now()
        end
    end
    self.source = source.new({
        core = with.core, changed = with.changed, rest = self.rest,
        come = function(kind, item)
            local ok, record = pcall(nodes_mod.places, kind, item, self.rest)
            if not ok then
                -- an unreadable item: only its own places are hidden
                record = { refs = {}, places = { { name = kind, conf = UNREAD, moves = true } } }
            end
            apply(self, record, true)
            return record
        end,
        go = function(record)
            apply(self, record, false)
        end,
    })
    return self
end


--- Starts to measure how long requests wait. Call it before a check of the places: requests may
-- have run since the last measurement.
function _M:begin()
    self.rested = clock_now()
end


--- Brings the index up to date. @treturn boolean false: report nothing, see source.refresh
function _M:refresh()
    return self.source:refresh()
end


--- Is the index still what APISIX has? Costs next to nothing.
-- @treturn boolean
function _M:holds()
    return self.source:holds()
end


local function differ(old, new)
    if not old or not new or #old ~= #new then
        return old ~= new
    end
    for i, node in ipairs(old) do
        if node.ip ~= new[i].ip or node.port ~= new[i].port
           or node.standby ~= new[i].standby then
            return true
        end
    end
    return old.names ~= new.names and differ(old.names or NONE, new.names or NONE)
end


--- Looks up nodes by name and by discovery. @treturn boolean whether any place has such nodes
function _M:look_up()
    self.unseen = false
    self.names:begin()
    local list = {}
    for place in pairs(self.moving) do
        list[#list + 1] = place
    end
    for _, place in ipairs(list) do
        local found, _, made_of, unknown = nodes_of(place.conf, self.names, self.rest,
                                                    place.source)
        place.unknown = unknown
        if found ~= true and differ(place.list, found) then
            index(self, place, false)
            place.list = found
            index(self, place, true)
        end
        place.source = made_of
        self.rest()
    end
    self.names:finish()
    return #list > 0
end


--- See names.waits.
function _M:waits()
    return self.names:waits()
end


--- Stops following the addresses of names.
function _M:forget_names()
    self.names:forget()
    self.unseen = next(self.moving) ~= nil
end


--- The addresses of a node's name, by the last DNS answer. Sends no query.
-- @treturn table|nil
function _M:records(name)
    return self.names:latest(name)
end


--- Whether the nodes of any place can change without a new configuration (names, discovery).
function _M:has_moving()
    return next(self.moving) ~= nil
end


--- Has discovery changed the nodes of a place that had this address? This reads memory only, so it
-- leaves out discovery by DNS, which may ask a server.
-- @treturn boolean
function _M:moved(ip)
    for place in pairs(self:of(ip)) do
        local kind = place.conf.discovery_type
        if kind and kind ~= "dns" then
            local found = nodes_of(place.conf, self.names, nil, place.source)
            if found ~= true and differ(place.list, found) then
                return true
            end
        end
    end
    return false
end


--- The places that have an address, as keys. Some may be unused: see uses.
-- @treturn table
function _M:of(ip)
    return part_of(self, ip)[ip] or NONE
end


--- The places that a question finds, as keys: see ways.parse. The first question for a port reads
-- all places; `index` follows from then on.
-- @treturn table
function _M:at(key)
    if type(key) == "number" and not self.ports[key] then
        local found = {}
        for place in pairs(self.all) do
            ways.each(place.list or NONE, function(node)
                found[place] = found[place] or node.port == key or nil
            end, self.rest)
            self.rest()
        end
        self.ports[key] = found
    end
    return self.ports[key] or self:of(key)
end


--- Does the configuration use this place? An upstream without a reference is unused.
function _M:uses(place)
    return not place.upstream or self.refs[place.upstream] ~= nil
end


--- @treturn number places whose nodes this worker cannot read, such as a name without an answer
function _M:hidden()
    local n = 0
    for place in pairs(self.moving) do
        if (place.unknown or not place.list) and self:uses(place) then
            n = n + 1
        end
    end
    return n
end


return _M
