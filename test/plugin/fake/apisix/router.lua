-- A stand-in for apisix.router: the first request after a change of the routes builds the router,
-- and APISIX's plugins are told so.
local event = require("apisix.core.event")

local by_id, built = {}, nil
local router_http = { routes = {}, version = 0 }


function router_http.match(ctx)
    if built ~= router_http.version then
        by_id = {}
        for _, route in ipairs(router_http.routes) do
            by_id[route.value.id] = route
        end
        event.push(event.CONST.BUILD_ROUTER, router_http.routes)
        built = router_http.version
    end
    return router_http.matching(ctx)
end


function router_http.matching(ctx)
    ctx.matched_route = by_id[ctx.var.uri:match("^/(%w+)")]
end


return { router_http = router_http }
