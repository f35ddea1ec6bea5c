-- A stand-in for APISIX's plugin `ai` (3.0 to 3.18), which is in its default list. It decides anew
-- at each change of the routes:
--
--   it keeps a copy of the matched route for each URI
--   if every route is an inline upstream with one IP node and nothing else, it replaces two
--   functions of APISIX, so that a request is routed without apisix.balancer
local apisix   = require("apisix")
local event    = require("apisix.core.event")
local router   = require("apisix.router").router_http
local balancer = require("ngx.balancer")
local lrucache = require("resty.lrucache")
local ngx      = ngx

-- fields of a route and of an upstream that the shortcut allows
local PLAIN = { id = true, uri = true, upstream = true }
local SIMPLE = { type = true, nodes = true, key = true, hash_on = true, home = true,
                 parent = true, resource_key = true, resource_version = true }

local orig_matching, orig_handle_upstream, orig_balancer_phase
local cache


local function deepcopy(orig, copied)
    if copied[orig] then
        return copied[orig]
    end
    local copy = setmetatable({}, getmetatable(orig))
    copied[orig] = copy
    for key, value in next, orig do
        copy[key] = type(value) == "table" and deepcopy(value, copied) or value
    end
    return copy
end


local function matching(ctx)
    local found = cache:get(ctx.var.uri)
    if not found then
        orig_matching(ctx)
        found = deepcopy(ctx, {})
        cache:set(ctx.var.uri, found)
    end
    ctx.matched_route = found.matched_route
end


local function handle_upstream()
end


local function balancer_phase()
    local server = ngx.ctx.api_ctx.matched_route.value.upstream.nodes[1]
    balancer.set_current_peer(server.host, server.port)
end


local function is_simple(route)
    for key in pairs(route.value) do
        if not PLAIN[key] then
            return false
        end
    end
    local upstream = route.value.upstream
    for key in pairs(upstream) do
        if not SIMPLE[key] then
            return false
        end
    end
    return #upstream.nodes == 1 and upstream.nodes[1].host:find("^[%d.]+$") ~= nil
end


local function analyze(routes)
    orig_matching = orig_matching or router.matching
    orig_handle_upstream = orig_handle_upstream or apisix.handle_upstream
    orig_balancer_phase = orig_balancer_phase or apisix.http_balancer_phase

    router.matching, cache = matching, lrucache.new(#routes + 3000)
    for _, route in ipairs(routes) do
        if not is_simple(route) then
            apisix.handle_upstream = orig_handle_upstream
            apisix.http_balancer_phase = orig_balancer_phase
            return
        end
    end
    apisix.handle_upstream, apisix.http_balancer_phase = handle_upstream, balancer_phase
end


local function init()
    event.register(event.CONST.BUILD_ROUTER, analyze)
end


local function destroy()
    if orig_matching then
        router.matching = orig_matching
        apisix.handle_upstream = orig_handle_upstream
        apisix.http_balancer_phase = orig_balancer_phase
        orig_matching, orig_handle_upstream, orig_balancer_phase = nil, nil, nil
    end
    event.unregister(event.CONST.BUILD_ROUTER)
end


return { init = init, destroy = destroy }
