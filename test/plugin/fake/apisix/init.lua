-- A stand-in for apisix/init.lua: the phases in APISIX's order. The configuration is one JSON text
-- in a shared dictionary. Each worker applies it on its own, as if each had its own watch.
local core    = require("apisix.core")
local pickers = require("apisix.pickers")
local cjson   = require("cjson.safe")
local give    = require("apisix.apply")
local router  = require("apisix.router").router_http
local ngx     = ngx

local dict = ngx.shared["stand-in"]
local load_balancer
local upstreams, revision, loaded = {}, 0, {}
local stashed
local _M = {}

-- as in APISIX, a request's context comes from a pool and is cleared at the end of the request
local clear, new = require("table.clear"), require("table.new")
local pool = {}


local function take()
    local ctx = table.remove(pool)
    return ctx or new(0, 32)
end


local function apply()
    local now = dict:get("revision") or 0
    if now ~= revision then
        upstreams = cjson.decode(dict:get("config")) or {}
        revision = now
        router.routes, router.version = {}, now
        for id, conf in pairs(upstreams) do
            conf.resource_key = "/apisix/" .. (conf.home or "upstreams") .. "/" .. id
            conf.resource_version = now
            local route = { key = "/apisix/routes/" .. id, value = { id = id, uri = "/" .. id } }
            if conf.home == "routes" then
                route.value.upstream, conf.parent = conf, route
            else
                route.value.upstream_id = id
            end
            if id ~= "discovery" and id ~= "objects" then
                table.insert(router.routes, route)
            end
        end
        local function resource(inline)
            return {
                prev_index = now,
                get = function(_, id)
                    local conf = upstreams[id]
                    return conf and { value = inline and { upstream = conf } or conf,
                                      modifiedIndex = now }
                end,
            }
        end
        core.config.applied["/upstreams"] = resource(false)
        core.config.applied["/services"] = resource(true)
        core.config.applied["/routes"] = resource(true)
        give(core, upstreams.objects, now)
    end
end


function _M.http_init_worker()
    load_balancer = require("apisix.balancer")
    load_balancer.init_worker()
    apply()
    ngx.timer.every(0.002, function(premature)
        if not premature then
            apply()
        end
    end)
    _M.load(FAKE_PLUGINS)
end


local function unload()
    for _, name in ipairs(loaded) do
        package.loaded["apisix.plugins." .. name].destroy()
        package.loaded["apisix.plugins." .. name] = nil
    end
end


-- Loads the plugins, or reloads them: like APISIX, unloads all old ones first.
function _M.load(names)
    unload()
    for _, name in ipairs(names) do
        require("apisix.plugins." .. name).init()
    end
    loaded = names
end


-- Like APISIX, unloads the plugins when the worker exits.
function _M.http_exit_worker()
    unload()
end


-- Nodes as service discovery returns them: a new table at every read.
local function discovered(name)
    local nodes = {}
    for i, node in ipairs((upstreams.discovery or {})[name] or {}) do
        nodes[i] = { host = node.host, port = node.port, weight = node.weight or 1 }
    end
    return nodes
end


-- Discovery by Kubernetes has no list if a Service has no ready endpoint.
local function of_kubernetes(name)
    local nodes = discovered(name)
    return #nodes > 0 and nodes or nil
end


package.loaded["apisix.discovery.init"] = {
    discovery = {
        stand_in = { nodes = discovered },
        -- like discovery.dns, it asks a server at each call
        dns = { nodes = function(name)
            local nodes = {}
            for i, ip in ipairs(core.resolver.parse_domain_all(name) or {}) do
                nodes[i] = { host = ip, port = 80, weight = 1 }
            end
            return nodes[1] and nodes
        end },
        -- like discovery.kubernetes, this discovery has no list before its first answer
        kubernetes = { nodes = of_kubernetes, check_discovery_ready = function()
            return (upstreams.discovery or {}).unready == nil
        end },
    },
}


local function content(nodes)
    local text = ""
    for _, node in ipairs(nodes or {}) do
        text = text .. node.host .. ":" .. node.port .. ","
    end
    return text
end


-- The upstream of a traffic-split rule is created for every request, and has no name.
local function split(conf, route)
    return { type = conf.type, key = conf.key, hash_on = conf.hash_on, nodes = conf.nodes,
             retries = conf.retries, pass_host = conf.pass_host, parent = route }
end


local function set_upstream(ctx, conf, id)
    if conf.split then
        conf = split(conf, { key = "/apisix/routes/" .. id, value = { upstream = { nodes = {} } } })
        ctx.upstream_key, ctx.upstream_version = "split#" .. id, tostring(revision)
    else
        if conf.service_name then
            local nodes = discovered(conf.service_name)
            if content(nodes) ~= content(conf.nodes) then
                conf._nodes_ver = (conf._nodes_ver or 0) + 1
            end
            conf.nodes = nodes
        end
        ctx.upstream_key = id
        ctx.upstream_version = revision .. "#" .. tostring(conf) .. "#" .. (conf._nodes_ver or "")
    end
    ctx.upstream_conf, ctx.pass_host = conf, conf.pass_host
    if conf.up then
        local up = {}
        for _, host in ipairs(conf.up) do
            up[host] = true
        end
        ctx.up_checker = {
            status_ver = 1, report = function() end,
            get_target_status = function(_, host)
                if not up["?" .. host] then
                    return up[host] or false
                end
            end,
        }
    end
    for _, node in ipairs(conf.nodes) do
        node.priority = node.priority or 0
    end
end


function _M.http_access_phase()
    local ctx = take()
    ctx.var = ngx.var
    ngx.ctx.api_ctx = ctx
    router.match(ctx)
    local route = ctx.matched_route
    if not route then
        return core.response.exit(503)
    end
    if ngx.var.http_upgrade then
        ngx.var.upstream_upgrade = ngx.var.http_upgrade
        ngx.var.upstream_connection = "upgrade"
    end

    _M.handle_upstream(ctx, route)
    if ngx.var.http_content_length then
        dict:incr("picked", 1, 0)
    end
    if ngx.var.arg_id then
        dict:set("worker of " .. ngx.var.arg_id, ngx.worker.pid())
    end
end


function _M.handle_upstream(ctx, route)
    local id = route.value.id
    set_upstream(ctx, route.value.upstream or upstreams[id], id)
    local conf = ctx.upstream_conf
    if #conf.nodes == 0 then
        return core.response.exit(503)
    end

    local server, err = load_balancer.pick_server(route, ctx)
    if not server then
        ngx.log(ngx.ERR, "failed to pick server: ", err)
        return core.response.exit(502)
    end
    ctx.picked_server = server
    if ctx.pass_host == "node" then
        ngx.var.upstream_host = server.upstream_host
    end
    if ngx.var.arg_forbid then
        return core.response.exit(403)
    end
    for _, name in ipairs(loaded) do
        local before = package.loaded["apisix.plugins." .. name].before_proxy
        local code = before and before({}, ctx)
        if code then
            return core.response.exit(code)
        end
    end
    if conf.scheme == "grpc" then
        stashed = ngx.ctx
        return ngx.exec("@grpc_pass")
    end
end


-- An internal redirect loses ngx.ctx. So, like APISIX, this stores it before and restores it here.
function _M.grpc_access_phase()
    ngx.ctx, stashed = stashed, nil
end


function _M.http_balancer_phase()
    local ctx = ngx.ctx.api_ctx
    load_balancer.run(ctx.matched_route, ctx)
end


function _M.http_header_filter_phase()
    local ctx = ngx.ctx.api_ctx
    if ctx and ctx.balancer_status and ngx.status == 500 then
        ngx.status = ctx.balancer_status
    end
end


function _M.http_log_phase()
    local ctx = ngx.ctx.api_ctx
    if ctx and ctx.server_picker then
        ctx.server_picker.after_balance(ctx, false)
    end
    if ctx then
        clear(ctx)
        pool[#pool + 1] = ctx
    end
end


-- A location for tests: stores a new configuration, or reports on this worker.
function _M.test_door()
    local path = ngx.var.uri
    if path == "/config" then
        ngx.req.read_body()
        dict:set("config", ngx.req.get_body_data())
        local given = tonumber(ngx.var.arg_revision)
        if given then
            dict:set("revision", given)
        end
        ngx.say(given or (dict:incr("revision", 1, 0)))
    elseif path == "/plugins/reload" then
        local names = {}
        for name in ngx.var.arg_names:gmatch("[^,]+") do
            table.insert(names, name)
        end
        _M.load(names)
        ngx.say(ngx.worker.pid())
    elseif path == "/picked" then
        ngx.say(dict:get("picked") or 0)
    elseif path == "/worker" then
        ngx.say(dict:get("worker of " .. ngx.var.arg_id) or 0)
    elseif path == "/resolved" then
        ngx.say(dict:get("resolved 0") or 0)
    elseif path == "/stale" then
        ngx.say(dict:get("stale") or 0)
    elseif path == "/block" then
        -- blocks this worker, like a plugin that computes for a long time or reads a file
        dict:set("blocked", ngx.worker.pid())
        while dict:get("blocked") do
            ngx.update_time()
        end
        ngx.say("ok")
    elseif path == "/blocked" then
        ngx.say(dict:get("blocked") or 0)
    elseif path == "/unblock" then
        dict:delete("blocked")
        ngx.say("ok")
    elseif path == "/break" then
        -- simulates a bug in our plugin, from the next request on, in every worker
        dict:set("broken", ngx.var.arg_what)
        ngx.say("ok")
    else
        ngx.say(cjson.encode({
            pid = ngx.worker.pid(), connections = pickers.connections(),
            made = require("apisix.balancer").made,
        }))
    end
end


return _M
