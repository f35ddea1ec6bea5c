--- Where this worker would choose an address: the places of the configuration that it routes by.
-- A place is a set of nodes of which one is chosen: an upstream that something refers to, or one
-- that is written into a route, a service, or a traffic-split rule wherever plugins can stand.
--
-- Nodes that are written down are indexed by address. An item of the configuration is never changed
-- but replaced, so what is new is found by identity. Nodes by service discovery and by name are
-- looked up each time: `pause` is called three times a millisecond, and must let requests pass.
local revision = require("apisix.drain.revision")
local nodes_of = require("apisix.drain.nodes").of
local clock_now = require("apisix.drain.clock").now
local KINDS    = revision.KINDS
local setmetatable = setmetatable
local ipairs   = ipairs
local pairs    = pairs
local next     = next
local pcall, type, tostring = pcall, type, tostring
local str_match = string.match
local str_gsub = string.gsub
local str_sub  = string.sub

-- how long requests wait for this, in seconds; looking at a list takes that long for so many items
local MOST = 0.0003
local MANY = 250

local _M = {}
local mt = { __index = _M }


--- @tparam table core apisix.core
-- @tparam function pause lets requests pass
-- @tparam function changed called in the step in which APISIX changes the configuration
function _M.new(core, pause, changed)
    return setmetatable({
        core = core, pause = pause, on_change = changed,
        kinds = {},         -- what was seen: { items, length, seen = { [item] = record }, turn }
        by_ip = {},         -- { [its end] = { [ip] = { [place] = true } } }: to grow a large table
                            -- takes milliseconds
        moving = {},        -- { [place] = true }: no written addresses
        upstreams = {},     -- { [id] = { [place] = true } }
        refs = {},          -- { [id] = how many items refer to it }
        watched = setmetatable({}, { __mode = "k" }),
        rested = 0,
    }, mt)
end


local function rest(self)
    if clock_now() - self.rested >= MOST then
        self.pause()
        self.rested = clock_now()
    end
end


-- APISIX calls both of these before it stores an item, the filter in the same step; an object that
-- has no filter gets one.
local function watch(self, object)
    if self.watched[object] then
        return
    end
    self.watched[object] = true
    local changed, upgrade, filter = self.on_change, object.upgrade_version, object.filter
    if type(upgrade) == "function" then
        object.upgrade_version = function(...)
            changed()
            return upgrade(...)
        end
    end
    object.filter = function(...)
        if filter then
            filter(...)
        end
        changed()
    end
end


local function place_of(conf, name, upstream_id)
    local list, moves = nodes_of(conf)
    return { conf = conf, name = name, upstream = upstream_id, list = list, moves = moves }
end


-- What an item brings: places, and ids of upstreams that it refers to.
local function record_of(kind, item)
    local places, refs = {}, {}
    local value = type(item) == "table" and item.value
    if type(value) ~= "table" then
        return { places = places, refs = refs }
    end
    local id = tostring(value.id or str_match(item.key or "", "([^/]+)$"))
    -- as `kind/id`, and nothing that would end it in a line (words.lua)
    local name = kind .. "/" .. str_gsub(id, "[^%w._-]", "_")
    if kind == "upstreams" then
        places[1] = place_of(value, name, id)
        return { places = places, refs = refs }
    end

    local function refer(conf, ref, within)
        if type(conf) == "table" then
            places[#places + 1] = place_of(conf, name .. within)
        elseif ref then
            refs[#refs + 1] = tostring(ref)
        end
    end
    refer(value.upstream, value.upstream_id, "")
    local split = type(value.plugins) == "table" and value.plugins["traffic-split"]
    for _, rule in ipairs(type(split) == "table" and split.rules or {}) do
        for _, choice in ipairs(rule.weighted_upstreams or {}) do
            refer(choice.upstream, choice.upstream_id, "/traffic-split")
        end
    end
    return { places = places, refs = refs }
end


local function part_of(self, ip)
    local ending = str_sub(ip, -2)
    self.by_ip[ending] = self.by_ip[ending] or {}
    return self.by_ip[ending]
end


local function mark(map, key, place, on)
    local set = map[key]
    if on then
        if not set then
            set = {}
            map[key] = set
        end
        set[place] = true
    elseif set then
        set[place] = nil
        if not next(set) then
            map[key] = nil
        end
    end
end


local function apply(self, record, on)
    for _, id in ipairs(record.refs) do
        local n = (self.refs[id] or 0) + (on and 1 or -1)
        self.refs[id] = n > 0 and n or nil
    end
    for _, place in ipairs(record.places) do
        if place.upstream then
            mark(self.upstreams, place.upstream, place, on)
        end
        if place.moves then
            self.moving[place] = on or nil
        else
            for _, node in ipairs(place.list) do
                mark(part_of(self, node.ip), node.ip, place, on)
            end
        end
    end
end


-- The list is kept as it was: to compare two lists costs a tenth of looking up each item.
local function is_same(known, values)
    local items = known and known.items
    if not items or known.length ~= #values then
        return false
    end
    for i = 1, known.length do
        if items[i] ~= values[i] then
            return false
        end
    end
    return true
end


-- Takes in one kind. Its list may change during a pause: the caller looks again then.
local function take(self, kind, values)
    local known = self.kinds[kind] or { seen = {}, turn = 0 }
    self.kinds[kind] = known
    if is_same(known, values) then
        return
    end
    -- absent until all of it is taken in
    known.items, known.turn = nil, known.turn + 1
    local items, fresh, length = {}, {}, #values
    for i = 1, length do
        local item = values[i]
        items[i] = item
        local record = item and known.seen[item]
        if record then
            record.turn = known.turn
        elseif item then
            fresh[#fresh + 1] = item
        end
        if i % MANY == 0 then
            rest(self)
        end
    end
    for item, record in pairs(known.seen) do
        if record.turn ~= known.turn then
            apply(self, record, false)
            known.seen[item] = nil
        end
    end
    for _, item in ipairs(fresh) do
        local record = record_of(kind, item)
        record.turn = known.turn
        apply(self, record, true)
        known.seen[item] = record
        rest(self)
    end
    known.items, known.length = items, length
end


local function each(self, look)
    local fetch = self.core.config and self.core.config.fetch_created_obj
    local any = false
    for _, kind in ipairs(KINDS) do
        local ok, object = pcall(fetch, "/" .. kind)
        object = ok and type(object) == "table" and object or nil
        if object then
            if object.need_reload then
                return false
            end
            any = any or object.values ~= nil
        end
        look(kind, object)
    end
    return any
end


--- Brings the index up to date.
-- @treturn boolean false while the configuration is not there, or being read anew: say nothing
function _M:refresh()
    self.rested = clock_now()
    return each(self, function(kind, object)
        if object then
            watch(self, object)
        end
        take(self, kind, object and object.values or {})
    end)
end


--- Is the index still what APISIX has? A look at the identity of each item, no more.
-- @treturn boolean
function _M:holds()
    local same = true
    local any = each(self, function(kind, object)
        same = same and is_same(self.kinds[kind], object and object.values or {})
    end)
    return any and same
end


local function is_used(self, place)
    return not place.upstream or self.refs[place.upstream] ~= nil
end


--- Calls `visit(list, name)` with the nodes of every place that may be about an address of the deny-list.
-- Pauses; the caller finds out what changed meanwhile.
-- @tparam table ips the deny-list's addresses, as keys
-- @treturn number places into which this worker cannot look: a name that it cannot resolve, say
function _M:about(ips, visit)
    local found, hidden = {}, 0
    for ip in pairs(ips) do
        for place in pairs(part_of(self, ip)[ip] or {}) do
            found[place] = true
        end
    end
    -- they are a copy: a pause lets the index change
    for place in pairs(self.moving) do
        found[place] = true
    end
    for place in pairs(found) do
        if is_used(self, place) then
            local list = place.moves and nodes_of(place.conf, self.core) or place.list
            if list then
                visit(list, place.name)
            else
                hidden = hidden + 1
            end
            rest(self)
        end
    end
    return hidden
end


--- Are there places whose nodes change without a change of the configuration?
function _M:moves()
    return next(self.moving) ~= nil
end


return _M
