--- A request of a bound session (sticky.lua), and the health checks of its upstream.
local request = require("apisix.drain.request_state")
local use, offers = request.use, request.offers

local _M = {}


--- Offers a bound session its ring. The health checker does not know the nodes that the owner has
-- removed. So the first pick is without the checker. If it hits a listed node, the health of listed
-- nodes counts: a second pick follows, with the checker, among the listed nodes (`checks`).
-- @treturn boolean false: the request has tried all nodes of the ring
function _M.offer(ctx, state, ring)
    local variant = ring
    if ring.unlisted then
        if state.checks and ring.listed then
            variant = ring.listed
        else
            state.checker = ctx.up_checker
            ctx.up_checker = nil
        end
    end
    if not offers(state, variant) then
        return false
    end
    use(ctx, variant)
    state.kept = ring
    return true
end


--- Was a listed node picked without the health checker? Then another pick must follow, and
-- `checks` is set for that.
function _M.must_check(ctx, addr)
    local state = ctx._drain
    local ring = state and state.kept
    if not ring or not ring.unlisted or not state.checker or state.checks
       or ring.unlisted[addr.id] or not ring.listed then
        return false
    end
    state.checks = true
    return true
end


return _M
