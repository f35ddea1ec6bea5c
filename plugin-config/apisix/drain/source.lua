--- The items that APISIX holds of each kind of object, and those that came or went since the last
-- call. APISIX replaces items and never edits them, so a new item is found by identity.
local clock_now = require("apisix.drain.host").now
local ngx      = ngx

-- items to read between two yields to requests
local MANY = 100
-- seconds until a list is compared item by item, even if it seems to be the same
local CHECK = 5
local NONE = {}

-- the kinds of object that can list nodes, for the subsystem that runs this code
local KINDS = ngx.config.subsystem == "stream" and { "stream_routes", "upstreams", "services" } or {
    "routes", "upstreams", "services", "plugin_configs", "global_rules", "consumers",
    "consumer_groups",
}
local OTHERS = { "ssls", "protos", "secrets", "stream_routes", "plugin_metadata" }

local _M = { KINDS = KINDS }
local mt = { __index = _M }


--- @tparam table with
--   core      apisix.core
--   rest      yields to requests when that is due
--   changed   called while APISIX changes an item, before any request can see the change
--   come      called with a kind and a new item; the result of `come` is stored with the item
--   go        called with that result when the item has gone
function _M.new(with)
    return setmetatable({
        core = with.core, on_change = with.changed, rest = with.rest,
        come = with.come, go = with.go,
        -- the last state: { values, version, check, items, length, turn, seen = { [item] = kept } }
        kinds = {},
        stale = {},         -- { [kind] = true }: an item was replaced since the last `take`
        watched = setmetatable({}, { __mode = "k" }),
    }, mt)
end


-- Wraps two functions of the object that APISIX calls in the step in which it stores an item:
-- upgrade_version and the filter. An object without a filter gets one.
local function watch(self, kind, object)
    if self.watched[object] then
        return
    end
    self.watched[object] = true
    local upgrade, filter = object.upgrade_version, object.filter
    local function changed()
        self.stale[kind] = true
        self.on_change()
    end
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


-- Whether the list has the same items as before. A copy of the old list is kept, because comparing
-- two lists costs a tenth of looking up each item.
local function is_same(self, known, values)
    local items = known.items
    if not items or known.length ~= #values then
        return false
    end
    for i = 1, known.length do
        if items[i] ~= values[i] then
            return false
        end
        if i % MANY == 0 then
            self.rest()
        end
    end
    return true
end


-- Compares the lists, not their items: if an item is replaced (etcd), `changed` marks its kind as
-- stale, and a new document (standalone) brings another list.
local function seems_same(self, kind, values, version)
    local known = self.kinds[kind]
    return known ~= nil and known.items ~= nil and known.values == values
           and known.length == #values and known.version == version and not self.stale[kind]
end


-- Takes in one kind. Its list may change during a pause: `holds` is then false, and the caller
-- calls `refresh` again.
local function take(self, kind, values, version)
    local known = self.kinds[kind] or { seen = {}, turn = 0, check = 0 }
    if seems_same(self, kind, values, version) and clock_now() < known.check then
        return
    end
    self.kinds[kind], self.stale[kind] = known, nil
    known.values, known.version, known.check = values, version, clock_now() + CHECK
    if is_same(self, known, values) then
        return
    end
    -- `items` is nil until the whole list is taken in
    known.items, known.turn = nil, known.turn + 1
    local items, fresh, length = {}, {}, #values
    for i = 1, length do
        local item = values[i]
        items[i] = item
        local one = item and known.seen[item]
        if one then
            one.turn = known.turn
        elseif item then
            fresh[#fresh + 1] = item
        end
        if i % MANY == 0 then
            self.rest()
        end
    end
    local gone, n = {}, 0
    for item, one in pairs(known.seen) do
        if one.turn ~= known.turn then
            gone[#gone + 1] = item
        end
        n = n + 1
        if n % MANY == 0 then
            self.rest()
        end
    end
    for _, item in ipairs(gone) do
        self.go(known.seen[item].kept)
        known.seen[item] = nil
        self.rest()
    end
    for _, item in ipairs(fresh) do
        known.seen[item] = { turn = known.turn, kept = self.come(kind, item) }
        self.rest()
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
            -- `values` is nil if no document of an API-driven gateway has had this kind: then no
            -- object of it is in use. A kind that etcd has not delivered yet has need_reload
            any = any or object.values ~= nil
        end
        look(kind, object)
    end
    return any
end


--- Applies new and removed items.
-- @treturn boolean false while the configuration is missing or being reloaded. The worker must
--   then report nothing
function _M:refresh()
    return each(self, function(kind, object)
        if object then
            watch(self, kind, object)
        end
        take(self, kind, object and object.values or NONE, object and object.conf_version)
    end)
end


--- Does APISIX still hold exactly the items that `refresh` has taken in? Costs next to nothing.
-- @treturn boolean
function _M:holds()
    local same = true
    local any = each(self, function(kind, object)
        same = same and seems_same(self, kind, object and object.values or NONE,
                                   object and object.conf_version)
    end)
    return any and same
end


local function revision_of(fetch, kind)
    local ok, object = pcall(fetch, "/" .. kind)
    if not ok or not object then
        return nil
    end
    return tonumber(object.prev_index) or tonumber(object.conf_version) or 0
end


--- Which configuration this worker has applied: etcd's revision in the etcd modes, the version of a
-- kind of object in the standalone ones. APISIX reads each kind by itself: after etcd was compacted
-- or restored, one kind may be read seconds before another.
-- @tparam table core apisix.core
-- @treturn number the highest revision of all kinds, 0 if APISIX reports none
-- @treturn table the revision by kind, for those of KINDS that this APISIX has
function _M.revision(core)
    local highest, kinds = 0, {}
    local fetch = core.config and core.config.fetch_created_obj
    if not fetch then
        return highest, kinds
    end

    for _, list in ipairs({ KINDS, OTHERS }) do
        for _, kind in ipairs(list) do
            local revision = revision_of(fetch, kind)
            kinds[kind] = list == KINDS and revision or nil
            highest = revision and revision > highest and revision or highest
        end
    end
    return highest, kinds
end


return _M
