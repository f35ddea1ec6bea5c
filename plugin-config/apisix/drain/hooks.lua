--- Our functions in the place of APISIX's. Each calls APISIX's own outside of any pcall, so its
-- errors and exits stay its own; what is ours runs inside, and when it fails the request goes on
-- as if we were not there, the failure is counted, and the worker is unfit for a while.
local pick_mod = require("apisix.drain.pick")
local ngx      = ngx
local ngx_now  = ngx.now
local pcall    = pcall

-- each further turn needs a change of the deny-list between two lines of code
local MAX_TURNS = 20

local _M = {}


--- @tparam table own APISIX's functions: pick, run, log, header
-- @tparam table deps { pick, core, active = function, caught = function(err),
--   count = function(what), recreate = ngx.balancer.recreate_request }
-- @treturn table { pick, run, log, header }
function _M.make(own, deps)
    local core, caught = deps.core, deps.caught
    local pick = deps.pick
    local wrapped = {}


    local function refuse()
        deps.count("refused")
        local phase = ngx.get_phase()
        if phase == "access" then
            -- what APISIX answers when an upstream has no node
            return core.response.exit(503)
        end
        return nil, "every node is sealed by apisix-drain"
    end


    -- After a failure of ours: the request goes where APISIX sends it, but it is not forgotten.
    local function keep_counted(ctx, server)
        if server and not ctx._drain_key then
            local ok, err = pcall(pick.hold, pick, ctx, server)
            if not ok then
                caught(err)
            end
        end
    end


    local function plainly(route, ctx, err)
        caught(err)
        pick_mod.forsake(ctx)
        local server, why = own.pick(route, ctx)
        keep_counted(ctx, server)
        return server, why
    end


    local function choose(route, ctx)
        local tries, failed, failure
        for turn = 1, MAX_TURNS do
            local ok, offered = pcall(pick.prepare, pick, ctx, failed)
            if not ok then
                return plainly(route, ctx, offered)
            end
            if offered == pick_mod.NONE then
                return refuse()
            end
            if not offered then
                return nil, failure
            end

            local server, err = own.pick(route, ctx)
            if turn == 1 then
                tries = ctx.balancer_try_count
            end

            if not server then
                if offered ~= pick_mod.FREE or failed then
                    return nil, err
                end
                failed, failure = offered, err
            else
                local settled
                ok, settled = pcall(pick.settle, pick, ctx, server, offered)
                if not ok then
                    caught(settled)
                    keep_counted(ctx, server)
                    return server, err
                end
                if settled then
                    if turn > 1 then
                        ctx.balancer_try_count = tries
                    end
                    return server, err
                end
            end
            -- not a retry: APISIX must not report a failure to its health checker
            ctx.balancer_try_count = 0
        end
        return refuse()
    end


    function wrapped.pick(route, ctx)
        if not deps.active() then
            return own.pick(route, ctx)
        end

        if ctx._drain_addr then
            local ok, err = pcall(pick.retried, pick, ctx)
            if not ok then
                return plainly(route, ctx, err)
            end
        end
        return choose(route, ctx)
    end


    -- Between the pick (access phase) and the connection nginx reads the whole body of the request,
    -- which can take seconds.
    local function move(route, ctx)
        local tries = ctx.balancer_try_count
        pick:unpick(ctx)
        ctx.balancer_try_count = 0
        local server = choose(route, ctx)
        ctx.balancer_try_count = tries

        if not server then
            return nil
        end
        deps.count("moved")
        ctx.picked_server = server
        if ctx.pass_host == "node" and server.upstream_host ~= ctx.var.upstream_host then
            ctx.var.upstream_host = server.upstream_host
            deps.recreate()
        end
        return true
    end


    function wrapped.run(route, ctx, plugin_funcs)
        -- within the same turn of the event loop there was no body to wait for; and whatever came
        -- just now, the request is counted, so the agent waits for it
        if ctx.picked_server and ctx._drain_at ~= ngx_now() and deps.active() then
            local ok, late = pcall(pick.is_late, pick, ctx)
            if not ok then
                caught(late)
            elseif late then
                local moved
                ok, moved = pcall(move, route, ctx)
                if not ok then
                    caught(moved)
                    pick_mod.forsake(ctx)
                    keep_counted(ctx, ctx.picked_server)
                elseif not moved then
                    ctx.picked_server = nil
                    return core.response.exit(503)
                end
            end
        end
        return own.run(route, ctx, plugin_funcs)
    end


    function wrapped.log(...)
        local ctx = ngx.ctx.api_ctx
        if ctx and ctx._drain_key then
            local ok, err = pcall(pick.release, pick, ctx)
            if not ok then
                caught(err)
            end
        end
        return own.log(...)
    end


    function wrapped.header(...)
        if ngx.status == 101 then
            local ctx = ngx.ctx.api_ctx
            if ctx and ctx._drain_key then
                local ok, err = pcall(pick.upgraded, pick, ctx)
                if not ok then
                    caught(err)
                end
            end
        end
        return own.header(...)
    end


    return wrapped
end


return _M
