-- A stand-in for apisix.balancer with its known behaviour. The first pick calls pick_server through
-- the module; a retry calls it in `run`, through an upvalue. A single node takes a short cut. For
-- each key it keeps the newest picker only (core/lrucache.lua); a request keeps the picker it got.
local balancer = require("ngx.balancer")
local core     = require("apisix.core")
local pickers  = require("apisix.pickers")
local ipairs   = ipairs
local ngx      = ngx

local cache = {}
-- `made` is for tests: how many pickers were built
local _M = { made = 0 }


local function upstream_host(node)
    return (node.domain or node.host) .. ":" .. node.port
end


-- Returns the nodes that the health checker does not report as down, or all nodes if there is none.
local function healthy(conf, checker)
    local up = {}
    for _, node in ipairs(conf.nodes) do
        if not checker or checker:get_target_status(node.host, node.port) ~= false then
            up[#up + 1] = node
        end
    end
    return #up > 0 and up or conf.nodes
end


-- Returns the nodes that can be picked. A node of weight 0 is among them only if all nodes of its
-- priority have weight 0. chash never picks such a node, so its picker may have no node at all.
local function drawing(nodes, type)
    local has = {}
    for _, node in ipairs(nodes) do
        if node.weight ~= 0 then
            has[node.priority or 0] = true
        end
    end
    local list = {}
    for _, node in ipairs(nodes) do
        if node.weight ~= 0 or (type ~= "chash" and not has[node.priority or 0]) then
            list[#list + 1] = node
        end
    end
    return list
end


local function by_priority(conf, key, checker)
    local levels, order, weights = {}, {}, {}
    for _, node in ipairs(drawing(healthy(conf, checker), conf.type)) do
        local priority = assert(node.priority, "the node has no priority")
        if not levels[priority] then
            levels[priority] = {}
            order[#order + 1] = priority
        end
        table.insert(levels[priority], node.host .. ":" .. node.port)
        weights[node.host .. ":" .. node.port] = node.weight
    end
    table.sort(order, function(a, b) return a > b end)

    local list = {}
    for i, priority in ipairs(order) do
        -- an upstream of a traffic-split rule has no name, so its state belongs to its picker
        local state_key = (conf.resource_key or tostring(conf) .. key) .. "#" .. priority
        list[i] = pickers[conf.type or "roundrobin"](levels[priority], state_key, conf,
                                                        weights)
    end
    if #list == 0 then
        return { get = function() return nil, "no node of any weight" end }
    elseif #list == 1 then
        return list[1]
    end
    return {
        get = function(ctx)
            for i = ctx.priority_balancer_picker_idx or 1, #list do
                local server = list[i].get(ctx)
                if server then
                    ctx.priority_balancer_picker_idx = i
                    return server
                end
                ctx.balancer_tried_servers, ctx.balancer_tried_servers_count = nil, 0
            end
            return nil, "all tried"
        end,
        after_balance = function(ctx, before_retry)
            local picker = list[ctx.priority_balancer_picker_idx]
            return picker and picker.after_balance(ctx, before_retry)
        end,
    }
end


local function picker_of(ctx)
    local checker = ctx.up_checker
    local version = ctx.upstream_version .. (checker and "#" .. checker.status_ver or "")
    local cached = cache[ctx.upstream_key]
    if not cached or cached.version ~= version then
        cached = {
            version = version, picker = by_priority(ctx.upstream_conf, ctx.upstream_key, checker),
        }
        cache[ctx.upstream_key] = cached
        _M.made = _M.made + 1
    end
    return cached.picker
end


local function pick_server(route, ctx)
    local nodes = ctx.upstream_conf.nodes
    if #nodes == 1 then
        nodes[1].upstream_host = upstream_host(nodes[1])
        return nodes[1]
    end

    ctx.balancer_try_count = (ctx.balancer_try_count or 0) + 1
    if ctx.balancer_try_count > 1 then
        if ngx.get_phase() ~= "balancer" then
            error("a retry was reported outside of the balancer phase")
        end
        if ctx.server_picker then
            ctx.server_picker.after_balance(ctx, true)
        end
        if ctx.up_checker then
            ctx.up_checker:report(balancer.get_last_failure())
        end
    end

    local picker = ctx.server_picker or picker_of(ctx)
    local server, err = picker.get(ctx)
    if not server then
        return nil, err
    end
    ctx.balancer_server, ctx.server_picker = server, picker

    local host, port = server:match("^(.*):(%d+)$")
    for _, node in ipairs(nodes) do
        if node.host == host and node.port == tonumber(port) then
            return { host = host, port = node.port, domain = node.domain,
                     upstream_host = upstream_host(node) }
        end
    end
    return { host = host, port = tonumber(port), upstream_host = host .. ":" .. port }
end


_M.pick_server = pick_server


function _M.run(route, ctx, plugin_funcs)
    local server, err = ctx.picked_server
    if server then
        ctx.picked_server = nil
        local retries = ctx.upstream_conf.retries or #ctx.upstream_conf.nodes - 1
        if retries > 0 then
            balancer.set_more_tries(retries)
        end
    else
        server, err = pick_server(route, ctx)
        if not server then
            ngx.log(ngx.ERR, "failed to pick server: ", err)
            return core.response.exit(502)
        end
        if ctx.pass_host == "node" and ctx.var.upstream_host ~= server.upstream_host then
            ctx.var.upstream_host = server.upstream_host
            balancer.recreate_request()
        end
    end

    local ok, failure = balancer.set_current_peer(server.host, server.port)
    if not ok then
        ngx.log(ngx.ERR, "failed to set the peer: ", failure)
        return core.response.exit(502)
    end
end


function _M.init_worker()
end


return _M
