-- A stand-in for APISIX's configuration store (core.config): an object for each kind, with its
-- list of items. A changed item becomes a new table. It calls upgrade_version, then the filter, and
-- then stores the item, as for an event of etcd.
local kinds = {}
local _M = { kinds = kinds }

-- the kinds of object that can list nodes
local KINDS = { "routes", "upstreams", "services", "plugin_configs", "global_rules", "consumers",
                "consumer_groups" }

local methods = {
    get = function(self, id)
        return self.values and self.values[self.place[tostring(id)] or 0] or nil
    end,
    upgrade_version = function(self, version) self.prev_index = version end,
}


function _M.of(kind, own)
    local object = kinds[kind]
    if not object then
        object = setmetatable({ key = kind, conf_version = 0, texts = {}, place = {} },
                              { __index = own or methods })
        kinds[kind] = object
    end
    return object
end


function _M.item(kind, value, version, id)
    local key = "/apisix/" .. kind .. "/" .. tostring(id or value.id)
    -- since APISIX 3.14
    local upstream = kind == "upstreams" and value or value.upstream
    if type(upstream) == "table" then
        upstream.resource_key = key
    end
    return { key = key, value = value, modifiedIndex = version }
end


-- No value: the object is gone.
function _M.put(object, kind, id, value, version)
    object.values = object.values or {}
    local at = object.place[id] or #object.values + 1
    object.conf_version = object.conf_version + 1
    object:upgrade_version(version)
    if not value then
        object.values[at], object.texts[id] = false, nil
        return
    end
    local item = _M.item(kind, value, version, id)
    if object.filter then
        object.filter(item)
    end
    object.values[at], object.place[id] = item, at
end


--- Applies one event of etcd. No value: the object is gone.
function _M.event(core, kind, id, value, version)
    local object = _M.of(kind)
    core.config.applied["/" .. kind] = object
    _M.put(object, kind, id, value, version)
end


--- All kinds are up to date as of this revision.
function _M.revision(core, version)
    for _, kind in ipairs(KINDS) do
        local object = _M.of(kind)
        object.values, object.prev_index = object.values or {}, version
        core.config.applied["/" .. kind] = object
    end
end


return _M
