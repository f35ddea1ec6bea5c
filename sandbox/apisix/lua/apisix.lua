--- A stand-in for apisix/init.lua in the sandbox: the phases in APISIX's order. Node has found the
-- route already, and tells where its upstream is written.
local core      = require("apisix.core")
local event     = require("apisix.core.event")
local canonical = require("apisix.drain.host").canonical
local ngx       = ngx

local PORTS = { http = 80, https = 443, grpc = 80, grpcs = 443 }

local load_balancer
local router, built = {}, nil
package.loaded["apisix.router"] = { router_http = router }
local _M = {}
-- both by a list of nodes as it is written
local filled = setmetatable({}, { __mode = "k" })
local drawn  = setmetatable({}, { __mode = "k" })
local turn   = 0


function _M.http_init_worker()
    load_balancer = require("apisix.balancer")
    load_balancer.init_worker()
    -- in the default list of plugins
    require("apisix.plugins.ai").init()
end


function _M.stream_init_worker()
    load_balancer = require("apisix.balancer")
end


function _M.stream_log_phase()
end


local function bare(host)
    return host:match("^%[(.*)%]$") or host
end


local function split(address)
    local host, port = address:match("^(%[[^%]]*%]):?(%d*)$")
    if not host then
        host, port = address:match("^([^:]*):?(%d*)$")
    end
    return host or address, tonumber(port)
end


-- The nodes as APISIX completes them before a pick: a list, each with a port and a priority.
local function fill(nodes, scheme)
    local list = filled[nodes]
    if list then
        return list
    end
    list = {}
    for key, node in pairs(nodes) do
        if type(node) ~= "table" then
            local host, port = split(key)
            node = { host = host, port = port, weight = node }
        end
        list[type(key) == "number" and key or #list + 1] = {
            host = node.host, port = node.port or PORTS[scheme or "http"], weight = node.weight,
            priority = node.priority or 0,
        }
    end
    filled[nodes] = list
    return list
end


-- Each request gets one record of a name (apisix/utils/upstream.lua, parse_domain_for_nodes).
-- @treturn table nodes @treturn string a text that is the same for the same nodes
local function draw(list)
    local hosts, any = {}, false
    for i, node in ipairs(list) do
        local host = bare(node.host)
        local records = not canonical(host) and core.resolver.parse_domain_all(host)
        any = any or records
        hosts[i] = records and records[turn % #records + 1] or node.host
    end
    if not any then
        return list, ""
    end
    turn = turn + 1
    local text = table.concat(hosts, " ")
    drawn[list] = drawn[list] or {}
    local made = drawn[list][text]
    if not made then
        made = {}
        for i, node in ipairs(list) do
            made[i] = {
                host = hosts[i], port = node.port, weight = node.weight, priority = node.priority,
                domain = hosts[i] ~= node.host and node.host or nil,
            }
        end
        drawn[list][text] = made
    end
    return made, text
end


local function discovered(conf)
    local found = package.loaded["apisix.discovery.init"].discovery[conf.discovery_type]
    return found and found.nodes(conf.service_name, conf.discovery_args) or {}
end


local function with_nodes(conf, nodes, parent)
    local copy = {}
    for field, value in pairs(conf) do
        copy[field] = value
    end
    copy.nodes, copy.parent = nodes, parent
    return copy
end


local copies = setmetatable({}, { __mode = "k" })


local function set_upstream(ctx, kind, id, rule, choice)
    local item = core.config.fetch_created_obj("/" .. kind):get(id)
    local conf, key, parent = item.value, "/" .. kind .. "#" .. id, nil
    if rule then
        -- the upstream of a traffic-split rule is created for every request, and has no name
        parent = { key = item.key, value = { upstream = { nodes = {} } } }
        conf = conf.plugins["traffic-split"].rules[rule].weighted_upstreams[choice].upstream
        key = key .. "_" .. rule .. "_" .. choice
    elseif kind ~= "upstreams" then
        conf = conf.upstream
    end
    local written = conf.nodes or {}
    if conf.service_name then
        written = discovered(conf)
    end
    local nodes, text = draw(fill(written, conf.scheme))
    if conf.service_name and conf.nodes ~= nodes then
        conf._nodes_ver, conf.nodes = (conf._nodes_ver or 0) + 1, nodes
    end
    ctx.upstream_key = key
    ctx.upstream_version = item.modifiedIndex .. "#" .. (conf._nodes_ver or "") .. "#" .. text
    if parent then
        ctx.upstream_conf = with_nodes(conf, nodes, parent)
    elseif conf.nodes == nodes then
        ctx.upstream_conf = conf
    else
        copies[nodes] = copies[nodes] or with_nodes(conf, nodes)
        ctx.upstream_conf = copies[nodes]
    end
    ctx.pass_host = conf.pass_host
end


function router.matching(ctx)
    ctx.matched_route = core.config.fetch_created_obj("/routes"):get(ctx.route_id)
end


-- The first request after a change of the routes builds the router, and plugins are told so.
local function match(ctx)
    local routes = core.config.fetch_created_obj("/routes")
    if built ~= routes.conf_version then
        event.push(event.CONST.BUILD_ROUTER, routes.values)
        built = routes.conf_version
    end
    router.matching(ctx)
end


--- Finds the upstream of a request and picks a node.
function _M.http_access_phase(var, kind, id, ...)
    local ctx = { var = var, route_id = kind == "routes" and id }
    ngx.ctx.api_ctx = ctx
    match(ctx)
    _M.handle_upstream(ctx, kind, id, ...)
end


function _M.handle_upstream(ctx, ...)
    set_upstream(ctx, ...)
    if #ctx.upstream_conf.nodes == 0 then
        return core.response.exit(503)
    end
    local server = load_balancer.pick_server(nil, ctx)
    if not server then
        return core.response.exit(502)
    end
    ctx.picked_server = server
end


function _M.http_balancer_phase()
    load_balancer.run(nil, ngx.ctx.api_ctx)
end


function _M.http_header_filter_phase()
end


function _M.http_log_phase()
    local ctx = ngx.ctx.api_ctx
    if ctx and ctx.server_picker then
        ctx.server_picker.after_balance(ctx, false)
    end
end


return _M
