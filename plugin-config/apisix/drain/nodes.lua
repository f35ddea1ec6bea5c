--- The nodes of an upstream, in every form in which APISIX 2.15 to 3.x holds them: a list, a map of
-- "host:port" to weight (traffic-split keeps this form), names, and service discovery.
local address   = require("apisix.drain.address")
local ways      = require("apisix.drain.ways")
local clock_now = require("apisix.drain.host").now
local max, huge = math.max, math.huge
local str_match = string.match
local str_byte  = string.byte
local str_gsub  = string.gsub

local PORTS   = { http = 80, https = 443, grpc = 80, grpcs = 443 }
-- nodes to read between two yields to requests
local MANY    = 50
local BRACKET = str_byte("[")

local NONE = {}
-- seconds between two calls of check_discovery_ready
local READY_AGAIN = 1

local _M = {}


--- A copy of a node or a configuration, with the same values.
function _M.copy_of(item)
    local copy = {}
    for field, value in pairs(item) do
        copy[field] = value
    end
    return copy
end


--- The highest priority of the nodes that have a weight; nil if none has. APISIX picks a node of
-- less priority, or of weight 0, only if no other is left: it is a standby.
function _M.top_of(nodes)
    local top
    for _, node in ipairs(nodes) do
        if node.weight ~= 0 then
            top = max(top or -huge, node.priority or 0)
        end
    end
    return top
end


-- { host, port, standby } of each node. A request may have replaced a node's name by an address:
-- then `domain` has the name.
local function written(nodes, scheme)
    local list, default = {}, PORTS[scheme or "http"]
    for key, node in pairs(nodes) do
        local host, port, weight, priority
        if type(node) == "table" then
            host, port = node.domain or node.host, node.port
            weight, priority = node.weight, node.priority
        else
            weight = node
            host, port = str_match(key, "^(.*):(%d+)$")
            if not host or (host:find(":", 1, true) and str_byte(host, 1) ~= BRACKET) then
                host, port = key, nil
            end
        end
        if type(host) == "string" then
            list[#list + 1] = { host = address.bare(host), port = tonumber(port) or default,
                                weight = weight, priority = priority }
        end
    end
    local top = _M.top_of(list)
    for _, node in ipairs(list) do
        node.standby = node.weight == 0 or (node.priority or 0) < (top or 0) or nil
    end
    return list
end


local ready, asked = false, 0


-- Has discovery read the endpoints from its API server? Until then it has no list of any Service.
-- check_discovery_ready logs each time that discovery is not ready, hence READY_AGAIN.
local function is_ready(found)
    if not found.check_discovery_ready then
        return true
    end
    local now = clock_now()
    if not ready and now >= asked then
        asked = now + READY_AGAIN
        local ok, is = pcall(found.check_discovery_ready)
        ready = ok and is == true
    end
    return ready
end


local function discovered(conf, names)
    local ok, loaded = pcall(require, "apisix.discovery.init")
    local found = ok and type(loaded) == "table" and loaded.discovery
                  and loaded.discovery[conf.discovery_type]
    if not found then
        return nil
    end
    if conf.discovery_type == "dns" then
        -- it asks a server at each call: that must not hold up the word about other places
        return names:of("dns " .. tostring(conf.service_name), function()
            local answered, list = pcall(found.nodes, conf.service_name)
            return answered and type(list) == "table" and list or nil
        end)
    end
    local nodes
    ok, nodes = pcall(found.nodes, conf.service_name, conf.discovery_args)
    if ok and nodes == nil and conf.discovery_type == "kubernetes" and is_ready(found) then
        -- nil from a discovery that is ready: the Service has no ready endpoint
        return NONE
    end
    return ok and type(nodes) == "table" and nodes or nil
end


--- @tparam table conf the upstream
-- @tparam table|nil names names.lua, to look up nodes that are not written down, without a wait
-- @tparam function|nil rest yields to requests when that is due
-- @tparam table|nil known the source of the last list: discovery returns the same table until its
--   nodes change
-- @treturn table|boolean|nil list of { ip, port, standby }; true if the list is still that of
--   `known`; nil if the nodes cannot be known
-- @treturn boolean true if nodes have to be looked up: they have names, or come from discovery
-- @treturn table|nil the source of the list, for the next `known`
-- @treturn boolean|nil true if a name does not resolve: as in APISIX, the list leaves out its node
function _M.of(conf, names, rest, known)
    local moves = conf.service_name ~= nil or conf.discovery_type ~= nil
    local nodes = conf.nodes
    if moves then
        nodes = names and discovered(conf, names)
        if not nodes then
            return nil, true
        elseif nodes == known then
            return true, true, nodes
        end
    elseif type(nodes) ~= "table" then
        return {}, false
    end

    local list, by_name, unknown = {}, false, nil
    for i, node in ipairs(written(nodes, conf.scheme)) do
        local ip = address.canonical(node.host)
        if ip then
            list[#list + 1] = { ip = ip, port = node.port, standby = node.standby }
        elseif not names then
            return nil, true
        else
            local ips = names:of(node.host)
            by_name, unknown = true, unknown or not ips
            ways.name(list, node.host, node.port)
            for _, each in ipairs(ips or NONE) do
                list[#list + 1] = { ip = each, port = node.port, standby = node.standby }
            end
        end
        if rest and i % MANY == 0 then
            rest()
        end
    end
    return list, moves or by_name, moves and not by_name and nodes or nil, unknown
end


--- The places of one item of the configuration, and the upstreams that the item refers to. A place
-- is a list of nodes that APISIX picks from: an upstream, or the nodes written into a route, a
-- service, or a traffic-split rule of any object that can hold plugins. In a place `past`, APISIX
-- connects past its balancer.
-- @tparam string kind of object
-- @tparam table item as core.config holds it
-- @tparam function rest yields to requests when that is due
-- @treturn table { places, refs }: a place is { conf, name, upstream, list, moves, past }.
--   `upstream`: the id of an upstream, which counts only if an item refers to it. `list`: the
--   nodes, nil if they have to be looked up (`moves`)
function _M.places(kind, item, rest)
    local places, refs = {}, {}
    local value = type(item) == "table" and item.value
    if type(value) ~= "table" or value.status == 0 then
        return { places = places, refs = refs }
    end

    local id = tostring(value.id or str_match(item.key or "", "([^/]+)$"))
    -- `kind/id` without the characters that separate names in a line (word_text.lua)
    local name = kind .. "/" .. str_gsub(id, "[^%w._-]", "_")
    local function place(conf, within, upstream)
        local list, moves = _M.of(conf, nil, rest)
        local past = conf.scheme == "kafka" and "/kafka"
        places[#places + 1] = {
            conf = conf, name = name .. within .. (past or ""), upstream = upstream, list = list,
            moves = moves, past = past,
        }
    end
    for plugin, nodes in pairs(ways.connected(value.plugins)) do
        local conf = { nodes = nodes, scheme = plugin }
        places[#places + 1] = { conf = conf, name = name .. "/plugins/" .. plugin, past = true,
                                list = _M.of(conf, { of = function() end }, rest) }
    end
    if kind == "upstreams" then
        place(value, "", id)
        return { places = places, refs = refs }
    end

    local function refer(conf, ref, within)
        if type(conf) == "table" then
            place(conf, within)
        elseif ref then
            refs[#refs + 1] = tostring(ref)
        end
    end
    refer(value.upstream, value.upstream_id, "")
    local split = type(value.plugins) == "table" and value.plugins["traffic-split"]
    for _, rule in ipairs(type(split) == "table" and split.rules or {}) do
        local choices = rule.weighted_upstreams or {}
        for _, choice in ipairs(choices) do
            -- a choice of weight 0 gets requests only if none has a weight
            if choice.weight ~= 0 or not _M.top_of(choices) then
                refer(choice.upstream, choice.upstream_id, "/traffic-split")
            end
        end
    end
    return { places = places, refs = refs }
end


return _M
