-- A stand-in for APISIX's configuration store (core.config): an object for each kind, with its
-- list of items. A changed item becomes a new table; an unchanged item stays the same table.
--
--   etcd         calls upgrade_version, then the filter, and then stores the item
--   standalone   makes a new list, and calls the filter for new items
local cjson = require("cjson.safe")
local ngx   = ngx

local kinds, names = {}, {}
local _M = {}

-- the kinds of object that can list nodes
local KINDS = { "routes", "upstreams", "services", "plugin_configs", "global_rules", "consumers",
                "consumer_groups" }

local function get(self, id)
    for _, item in ipairs(self.values or {}) do
        if item and tostring(item.value.id) == tostring(id) then
            return item
        end
    end
end

local function get_at(self, id)
    return self.values and self.values[self.place[tostring(id)] or 0] or nil
end

local methods = {
    get = get_at,
    upgrade_version = function(self, version) self.prev_index = version end,
}


local function object_of(kind, standalone)
    local object = kinds[kind]
    if not object then
        object = setmetatable({ key = kind, conf_version = 0, texts = {}, place = {} },
                              { __index = standalone and { get = get } or methods })
        kinds[kind] = object
    end
    return object
end


local function item_of(kind, value, version, id)
    local key = "/apisix/" .. kind .. "/" .. tostring(id or value.id)
    -- since APISIX 3.14
    local upstream = kind == "upstreams" and value or value.upstream
    if type(upstream) == "table" then
        upstream.resource_key = key
    end
    return { key = key, value = value, modifiedIndex = version }
end


-- No value: the object is gone.
local function put(object, kind, id, value, version)
    object.values = object.values or {}
    local at = object.place[id] or #object.values + 1
    object:upgrade_version(version)
    if not value then
        object.values[at], object.texts[id] = false, nil
        return
    end
    local item = item_of(kind, value, version, id)
    if object.filter then
        object.filter(item)
    end
    object.values[at], object.place[id] = item, at
end


local function by_etcd(object, kind, list, version)
    object.values = object.values or {}
    local kept = {}
    for _, value in ipairs(list) do
        local id, text = tostring(value.id), cjson.encode(value)
        kept[id] = true
        if object.texts[id] ~= text then
            put(object, kind, id, value, version)
            object.texts[id] = text
        end
    end
    for _, item in ipairs(object.values) do
        local id = item and tostring(item.value.id)
        if item and not kept[id] then
            put(object, kind, id, nil, version)
        end
    end
end


local function by_document(object, kind, list, version)
    local old, values = {}, {}
    for _, item in ipairs(object.values or {}) do
        old[tostring(item.value.id)] = item
    end
    for i, value in ipairs(list) do
        local id, text = tostring(value.id), cjson.encode(value)
        values[i] = object.texts[id] == text and old[id] or item_of(kind, value, version)
        if values[i] ~= old[id] and object.filter then
            object.filter(values[i])
        end
        object.texts[id] = text
    end
    object.values, object.conf_version = values, version
end


-- A large generated configuration: upstreams u1, u2, … and a route to each.
local function many(want)
    local list, routes = {}, {}
    for i = 1, want.upstreams do
        local nodes = {}
        for n = 1, want.nodes do
            nodes[n] = { host = "10." .. n .. "." .. math.floor(i / 250) .. "." .. i % 250,
                         port = 8080, weight = 1 }
        end
        list[i] = { id = "u" .. i, type = "roundrobin", nodes = nodes }
        routes[i] = { id = "r" .. i, uri = "/" .. i, upstream_id = "u" .. i }
    end
    return { upstreams = list, routes = routes }
end


--- Applies one event of etcd. No value: the object is gone.
function _M.event(core, kind, id, value, version)
    local object = object_of(kind)
    core.config.applied["/" .. kind] = object
    put(object, kind, id, value, version)
end


--- All kinds are up to date as of this revision.
function _M.revision(core, version)
    for _, kind in ipairs(KINDS) do
        local object = object_of(kind)
        object.values, object.prev_index = object.values or {}, version
        core.config.applied["/" .. kind] = object
    end
end


-- Returns whether this worker's word is valid. It finds the worker's number by its pid.
local function speaks()
    local counts = ngx.shared["apisix-drain-counts"]
    for slot = 1, counts and 64 or 0 do
        local number, pid = (counts:get("w|" .. slot) or ""):match("^(%d+) %d+ (%d+)")
        if tonumber(pid) == ngx.worker.pid() then
            return counts:get("g|" .. number) ~= nil
        end
    end
    return false
end


-- Resolves a name. Like APISIX, it waits for the DNS server in the coroutine of its caller.
local function resolve(name)
    ngx.shared["stand-in"]:incr("resolved " .. ngx.worker.id(), 1, 0)
    while names[name] == false and not ngx.worker.exiting() do
        ngx.sleep(0.01)
    end
    return names[name] or nil
end


--- Applies a configuration, given as one object:
--     kinds        { upstreams = { value, … }, … }
--     standalone   true: one document, else etcd
--     reload       kinds that are being reread
--     same         true: nothing has changed
--     names        { [name] = addresses, or false: its DNS server is silent }
--     many         { upstreams, nodes }: this many of them, in place of `kinds`
--     replace      { kind, value }: only this item changes
--     worker       { ["0"] = the kinds of this worker in place of those, … }
function _M.apply(core, objects, version)
    if not objects then
        return
    end
    if objects.replace then
        for kind, object in pairs(kinds) do
            core.config.applied["/" .. kind] = object
        end
        local change = objects.replace
        return _M.event(core, change.kind, change.value.id, change.value, version)
    end
    objects.kinds = objects.many and many(objects.many) or objects.kinds
    local own = (objects.worker or {})[tostring(ngx.worker.id())] or {}
    for kind, list in pairs(objects.kinds) do
        local object = object_of(kind, objects.standalone)
        local apply = objects.standalone and by_document or by_etcd
        apply(object, kind, own[kind] or list, version)
        object.need_reload = (objects.reload or {})[kind]
        object.prev_index = object.prev_index or version
        core.config.applied["/" .. kind] = object
    end
    -- for tests: counts words that are still valid although the configuration has changed
    if speaks() and not objects.same then
        ngx.shared["stand-in"]:incr("stale", 1, 0)
    end
    names = objects.names or {}
    core.resolver = { parse_domain_all = resolve }
end


return _M
