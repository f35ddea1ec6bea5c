-- Stand-ins for APISIX's balancing algorithms, with the properties that matter to whoever gives
-- them fewer nodes: one picker for a whole request, servers tried are remembered on the request,
-- and least_conn keeps one state for all pickers of an upstream, which a new picker prunes.
local pairs, ipairs = pairs, ipairs

local _M = {}


local function mark(ctx)
    local tried = ctx.balancer_tried_servers or {}
    ctx.balancer_tried_servers = tried
    tried[ctx.balancer_server] = true
    ctx.balancer_tried_servers_count = (ctx.balancer_tried_servers_count or 0) + 1
    ctx.balancer_server = nil
end


local function exhausted(ctx, n)
    return ctx.balancer_tried_servers and ctx.balancer_tried_servers_count == n
end


function _M.roundrobin(servers)
    local at = math.random(#servers)
    return {
        get = function(ctx)
            if exhausted(ctx, #servers) then
                return nil, "all tried"
            end
            for _ = 1, #servers do
                at = at % #servers + 1
                local server = servers[at]
                if not (ctx.balancer_tried_servers and ctx.balancer_tried_servers[server]) then
                    return server
                end
            end
            return nil, "all tried"
        end,
        after_balance = function(ctx, before_retry)
            if before_retry then
                return mark(ctx)
            end
            ctx.balancer_server, ctx.balancer_tried_servers = nil, nil
        end,
    }
end


local states = {}


function _M.least_conn(servers, key)
    local state = states[key]
    if not state then
        state = { conns = {}, members = {} }
        states[key] = state
    end
    local mine = {}
    for _, server in ipairs(servers) do
        mine[server], state.members[server] = true, true
    end
    for server in pairs(state.members) do
        if not mine[server] then
            state.members[server] = nil
        end
    end

    return {
        get = function(ctx)
            local best
            for server in pairs(state.members) do
                local tried = ctx.balancer_tried_servers and ctx.balancer_tried_servers[server]
                if mine[server] and not tried and
                   (not best or (state.conns[server] or 0) < (state.conns[best] or 0)) then
                    best = server
                end
            end
            if not best then
                return nil, "all tried"
            end
            state.conns[best] = (state.conns[best] or 0) + 1
            return best
        end,
        after_balance = function(ctx, before_retry)
            local server = ctx.balancer_server
            if server then
                state.conns[server] = (state.conns[server] or 0) - 1
            end
            if before_retry and server then
                return mark(ctx)
            end
            ctx.balancer_server, ctx.balancer_tried_servers = nil, nil
        end,
    }
end


-- The sum of least_conn's connections: 0 when nothing runs, or someone lost count.
function _M.connections()
    local sum = 0
    for _, state in pairs(states) do
        for _, n in pairs(state.conns) do
            sum = sum + n
        end
    end
    return sum
end


return _M
