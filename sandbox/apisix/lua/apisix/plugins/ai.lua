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
local ngx      = ngx

-- fields of a route and of an upstream that the shortcut allows
local PLAIN = { id = true, uri = true, uris = true, upstream = true, priority = true,
                status = true, create_time = true, update_time = true }
local SIMPLE = { type = true, nodes = true, key = true, hash_on = true, home = true,
                 parent = true, resource_key = true, resource_version = true }

local own, copies


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
    local uri = ctx.var.uri
    if not copies[uri] then
        own.matching(ctx)
        copies[uri] = deepcopy(ctx, {})
    end
    ctx.matched_route = copies[uri].matched_route
end


local function handle_upstream()
end


local function balancer_phase()
    local server = ngx.ctx.api_ctx.matched_route.value.upstream.nodes[1]
    balancer.set_current_peer(server.host, server.port)
end


local function has_only(fields, object)
    for key in pairs(object) do
        if not fields[key] then
            return false
        end
    end
    return true
end


local function is_simple(route)
    local upstream = route.value.upstream
    return has_only(PLAIN, route.value) and upstream and has_only(SIMPLE, upstream)
           and #(upstream.nodes or {}) == 1 and upstream.nodes[1].host:find("^[%d.]+$") ~= nil
end


local function analyze(routes)
    own = own or { matching = router.matching, handle = apisix.handle_upstream,
                   phase = apisix.http_balancer_phase }
    router.matching, copies = matching, {}
    local simple = true
    for _, route in ipairs(routes) do
        simple = simple and (not route or is_simple(route))
    end
    apisix.handle_upstream = simple and handle_upstream or own.handle
    apisix.http_balancer_phase = simple and balancer_phase or own.phase
end


return {
    init = function() event.register(event.CONST.BUILD_ROUTER, analyze) end,
    destroy = function()
        if own then
            router.matching, apisix.handle_upstream = own.matching, own.handle
            apisix.http_balancer_phase, own = own.phase, nil
        end
        event.unregister(event.CONST.BUILD_ROUTER)
    end,
}
