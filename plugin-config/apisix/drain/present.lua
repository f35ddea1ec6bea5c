--- The present configuration of the upstream that a request began with. A request keeps the
-- configuration of its access phase. A slow upload can outlive every node in that.
--
-- `of` returns nil if the balancer phase cannot get the present configuration safely:
--   - an upstream written into a traffic-split rule: it has no name
--   - nodes whose name has not been resolved yet, and discovery by DNS: this code must not wait
--   - a change of values that nginx has used already (scheme, TLS, host)
local address   = require("apisix.drain.address")
local copy_of   = require("apisix.drain.nodes").copy_of
local concat    = table.concat
local str_match = string.match

local KINDS = { upstreams = "/upstreams", services = "/services", routes = "/routes" }
local PORTS = { http = 80, https = 443, grpc = 80, grpcs = 443 }
local FIXED = { "scheme", "pass_host", "upstream_host" }

local _M = {}


--- The key of the object that an upstream is part of; nil if the upstream is part of no object.
-- Before APISIX 3.14, an upstream has its parent object in place of a key. traffic-split sets a
-- parent too, but its upstream is no part of that object.
local function key_of(base)
    local parent = base.parent
    if base.resource_key or type(parent) ~= "table" then
        return base.resource_key
    end
    local value = parent.value
    local belongs = type(value) == "table" and (value == base or value.upstream == base)
    return belongs and parent.key or nil
end


-- @treturn table|nil the upstream @treturn number|nil its revision
local function configured(core, base)
    local key = key_of(base)
    local kind, id = str_match(key or "", "/([%a_]+)/([^/]+)$")
    local config = KINDS[kind or ""] and core.config.fetch_created_obj(KINDS[kind])
    local item = config and config:get(id)
    local value = item and item.value
    if not value then
        return nil
    end
    return kind == "upstreams" and value or value.upstream, item.modifiedIndex
end


local function fits(now, base)
    for _, field in ipairs(FIXED) do
        if now[field] ~= base[field] then
            return false
        end
    end
    local a, b = now.tls or {}, base.tls or {}
    return a.client_cert == b.client_cert and a.client_cert_id == b.client_cert_id
end


local function nodes_of(now)
    if not now.service_name then
        return now.nodes
    end
    local loaded = package.loaded["apisix.discovery.init"]
    local found = type(loaded) == "table" and loaded.discovery
                  and loaded.discovery[now.discovery_type]
    if not found or now.discovery_type == "dns" then
        return nil
    end
    local ok, nodes = pcall(found.nodes, now.service_name, now.discovery_args)
    return ok and nodes or nil
end


--- The nodes as APISIX completes them before a pick. Without a priority, APISIX's pick fails.
-- @treturn table|nil nodes; nil if a node has a name, or its port is not known
-- @treturn string text that is the same for the same nodes
local function filled(nodes, scheme)
    local list, marks = {}, {}
    for i, node in ipairs(nodes) do
        local host, port = node.host, node.port or PORTS[scheme]
        local ip = address.canonical(address.bare(host))
        if not ip or not port then
            return nil
        end

        local copy = copy_of(node)
        copy.host = address.written(address.bare(host))
        copy.port, copy.priority = port, node.priority or 0
        list[i] = copy
        marks[i] = copy.host .. " " .. port .. " " .. tostring(node.weight) .. " " .. copy.priority
    end
    return list, concat(marks, ",")
end


--- @tparam table core apisix.core
-- @tparam table base the configuration that the request began with
-- @treturn table|nil the present configuration, for use in place of `base`
-- @treturn string|nil its version: the same for the same content
function _M.of(core, base)
    local now, revision = configured(core, base)
    if not now or not fits(now, base) then
        return nil
    end
    local nodes = nodes_of(now)
    local list, mark
    if type(nodes) == "table" then
        list, mark = filled(nodes, now.scheme or "http")
    end
    if not list or #list == 0 then
        return nil
    end

    local conf = copy_of(now)
    conf.nodes, conf.nodes_ref = list, list
    return conf, tostring(revision) .. "#present " .. mark
end


return _M
