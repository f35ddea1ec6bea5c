--- The barrier's state of a request: ctx._drain, made when a node is denied or was tried.
--   base, version   the configuration that APISIX gave, or the present one; ctx has a variant of it
--   tried           ids of the nodes that failed this request
--   renewed         the present configuration was read
--   retried         a node has failed this request
--   next            the variant with successors, while the request is offered that variant
--   checker         APISIX's health checker, while the request has that of a variant
--   succeeded       the request was counted as `succeeded`
--   down            APISIX's health checks leave out all free nodes but standbys
--   unfit           they leave out the listed pods of the successors too
local ipairs = ipairs

local _M = {}


--- Drops the request's picker, which was made for other nodes. after_balance with true releases the
-- request's claim on its last server, and does nothing else of note in any algorithm. The tried
-- servers are lost with the picker, so ctx._drain.tried keeps them.
function _M.drop_picker(ctx)
    local picker = ctx.server_picker
    if picker and picker.after_balance and ctx.balancer_server then
        picker.after_balance(ctx, true)
    end
    ctx.server_picker = nil
    ctx.balancer_server = nil
    ctx.balancer_tried_servers = nil
    ctx.balancer_tried_servers_count = nil
    ctx.priority_balancer_picker_idx = nil
end


--- The state of a request, made if it has none.
function _M.of(ctx)
    local state = ctx._drain
    if not state then
        state = {}
        ctx._drain = state
    end
    if not state.base then
        state.base, state.version = ctx.upstream_conf, ctx.upstream_version
    end
    return state
end


--- Makes APISIX pick from a variant, or from the whole configuration.
function _M.use(ctx, variant)
    local state = _M.of(ctx)
    local conf = variant and variant.conf or state.base
    local version = variant and variant.version or state.version
    if ctx.upstream_conf ~= conf or ctx.upstream_version ~= version then
        _M.drop_picker(ctx)
        ctx.upstream_conf, ctx.upstream_version = conf, version
    end
end


--- Does the variant have a node that this request has not tried?
function _M.offers(state, variant)
    if not variant then
        return false
    end
    local tried = state.tried
    if not tried then
        return true
    end
    for _, id in ipairs(variant.ids) do
        if not tried[id] then
            return true
        end
    end
    return false
end


return _M
