--- Gives APISIX's configuration store (apisix.objects) what a test asks for.
local cjson   = require("cjson.safe")
local objects = require("apisix.objects")
local ngx     = ngx

local names = {}


-- in a document
local function get(self, id)
    for _, item in ipairs(self.values or {}) do
        if item and tostring(item.value.id) == tostring(id) then
            return item
        end
    end
end


local function by_etcd(object, kind, list, version)
    object.values = object.values or {}
    local kept = {}
    for _, value in ipairs(list) do
        local id, text = tostring(value.id), cjson.encode(value)
        kept[id] = true
        if object.texts[id] ~= text then
            objects.put(object, kind, id, value, version)
            object.texts[id] = text
        end
    end
    for _, item in ipairs(object.values) do
        local id = item and tostring(item.value.id)
        if item and not kept[id] then
            objects.put(object, kind, id, nil, version)
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
        values[i] = object.texts[id] == text and old[id] or objects.item(kind, value, version)
        if values[i] ~= old[id] and object.filter then
            object.filter(values[i])
        end
        object.texts[id] = text
    end
    object.values, object.conf_version = values, version
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
--     worker       { ["0"] = the kinds of this worker in place of those, … }
return function(core, want, version)
    if not want then
        return
    end
    local own = (want.worker or {})[tostring(ngx.worker.id())] or {}
    for kind, list in pairs(want.kinds) do
        local object = objects.of(kind, want.standalone and { get = get })
        local apply = want.standalone and by_document or by_etcd
        apply(object, kind, own[kind] or list, version)
        object.need_reload = (want.reload or {})[kind]
        object.prev_index = object.prev_index or version
        core.config.applied["/" .. kind] = object
    end
    -- for tests: counts words that are still valid although the configuration has changed
    if speaks() and not want.same then
        ngx.shared["stand-in"]:incr("stale", 1, 0)
    end
    names = want.names or {}
    core.resolver = { parse_domain_all = resolve }
end
