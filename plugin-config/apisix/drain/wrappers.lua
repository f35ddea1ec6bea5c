--- The plugin's functions in place of APISIX's, which they call outside of any pcall: APISIX's
-- errors and exits pass unchanged. If the plugin's code fails, the request goes on without it, the
-- failure is counted (`errors`), and the worker is unfit for a while. A request that connects past
-- `run` makes the worker unfit for good (docs/decisions/0070). No table, no closure for a request.
local pick_mod = require("apisix.drain.pick")
local address  = require("apisix.drain.address")
local ngx      = ngx
local pcall    = pcall
local str_sub  = string.sub

-- one more turn is needed only if the deny-list changes between two lines of code, or if APISIX
-- picks a node that this request has tried before
local MAX_TURNS = 20

local _M = {}


--- Makes the plugin's functions, for install.lua.
-- @tparam table own APISIX's functions by the names of install.lua
-- @tparam table deps { pick, inflight, kinds, entries, apisix,
--   caught = function(err), passed_by = function(addr, how): a request connected past `run`,
--   count = function(what), recreate = ngx.balancer.recreate_request,
--   turn_away = ends a request that no node may serve }
-- @treturn table our functions by the same names, and `retry`
function _M.make(own, deps)
    local caught, turn_away = deps.caught, deps.turn_away
    local pick, plans = deps.pick, deps.pick.plans
    local inflight, entries = deps.inflight, deps.entries
    local prepare, settle = pick.prepare, pick.settle
    local retried = pick.retried
    local leave, held = inflight.leave, inflight.held
    local kinds, begin, is_session = deps.kinds, deps.kinds.begin, not own.header
    local own_pick, own_run, own_log, own_header = own.pick, own.run, own.log, own.header
    local wrapped = {}
    -- APISIX's `run` is under way and has not connected yet: no other request runs meanwhile
    local in_run


    -- Calls a function of the plugin. @treturn boolean false if it failed @treturn its result
    local function try(func, ...)
        local ok, result = pcall(func, ...)
        if not ok then
            caught(result)
        end
        return ok, result
    end


    -- After a failure of the plugin: the request goes where APISIX sends it, but it is still
    -- counted.
    local function keep_counted(ctx, server)
        if server and (held[ctx] or try(pick.hold, pick, ctx, server)) then
            try(pick.passed, pick, server)
        end
    end


    -- See pick.settle. After a failure of the plugin: true.
    local function may_connect(ctx, server, offered)
        local ok, settled = try(settle, pick, ctx, server, offered)
        if not ok then
            keep_counted(ctx, server)
        end
        return settled or not ok
    end


    local function plainly(route, ctx, connecting)
        pick_mod.forsake(ctx)
        local server, why = own_pick(route, ctx)
        if connecting then
            keep_counted(ctx, server)
        end
        return server, why
    end


    -- APISIX's pick. For a denied node in the ring of chash, it then picks the one that stands in
    local function pick_now(route, ctx)
        local server, err = own_pick(route, ctx)
        local conf = ctx.upstream_conf
        local instead = server and conf.instead
                        and conf.instead[address.of(server.host, server.port).id]
        if instead then
            ctx.upstream_conf = instead
            server, err = own_pick(route, ctx)
            ctx.upstream_conf = conf
        end
        return server, err
    end


    local function refuse(connecting)
        deps.count("refused")
        if connecting then
            return nil, "every node is sealed by apisix-drain"
        end
        return turn_away()
    end


    local function choose(route, ctx, connecting)
        if not ctx.upstream_conf then
            -- whatever routed the request gave it no upstream: only APISIX knows what to do
            local server, err = own_pick(route, ctx)
            keep_counted(ctx, server)
            return server, err
        end

        local failed, failure, tries
        for turn = 1, MAX_TURNS + #ctx.upstream_conf.nodes do
            local ok, offered = try(prepare, pick, ctx, failed, connecting)
            if not ok then
                return plainly(route, ctx, connecting)
            end
            if offered == pick_mod.NONE then
                return refuse(connecting)
            end
            if not offered then
                return nil, failure
            end

            local server, err = pick_now(route, ctx)
            if turn == 1 then
                tries = ctx.balancer_try_count
            end

            if not server then
                if not pick_mod.HAS_MORE[offered] then
                    return nil, err
                end
                failed, failure = offered, err
            elseif not connecting or may_connect(ctx, server, offered) then
                ctx.balancer_try_count = tries
                return server, err
            end
            -- the next pick is not a retry: APISIX must report no failure to its health checker
            ctx.balancer_try_count = 0
        end
        return refuse(connecting)
    end


    --- Replaces pick_server in the access phase.
    function wrapped.pick(route, ctx)
        local set, conf = entries.set, ctx.upstream_conf
        if not conf or (set.n == 0 and conf.type ~= "least_conn")
           or plans:is_plain(ctx, set) then
            return own_pick(route, ctx)
        end
        return choose(route, ctx, false)
    end


    --- Replaces pick_server in the balancer phase, after a node has failed.
    function wrapped.retry(route, ctx)
        return (try(retried, pick, ctx) and choose or plainly)(route, ctx, true)
    end


    -- Picks another node: the picked one (`from`) is denied by now, and has received nothing yet.
    -- Returns nil if the request was turned away.
    local function move(route, ctx, from)
        local tries = ctx.balancer_try_count
        ctx.balancer_try_count = 0
        local host, port = from.host, from.port
        local server = choose(route, ctx, true)
        -- APISIX counts no try if it picks the only node; the next pick must still be a retry
        ctx.balancer_try_count = tries or 1
        ctx.picked_server = server
        if not server then
            return turn_away()
        end

        if server.host ~= host or server.port ~= port then
            deps.count("moved")
        end
        if ctx.pass_host == "node" and server.upstream_host ~= ctx.var.upstream_host then
            ctx.var.upstream_host = server.upstream_host
            deps.recreate()
        end
        return server
    end


    -- Right before the first connect. Returns nil if the request was turned away.
    local function admit(route, ctx, server)
        return may_connect(ctx, server) or move(route, ctx, server)
    end


    function wrapped.run(route, ctx, plugin_funcs)
        local server = ctx.picked_server
        ctx._drain_run = true
        if server then
            if not admit(route, ctx, server) then
                return
            end
            if is_session then
                -- L4 has no header filter that marks the beginning of an answer: use the connect
                ctx._drain_began = kinds.now
            end
        end
        in_run = true
        return own_run(route, ctx, plugin_funcs)
    end


    --- Around a plugin of APISIX that connects to the picked node by itself (hook.lua).
    function wrapped.around(send, conf, ctx)
        local server = ctx.picked_server
        if server then
            admit(ctx.matched_route, ctx, server)
        end
        local code, body = send(conf, ctx)
        if server and not code and not body then
            -- the request may go on to `run`, which counts it
            leave(inflight, ctx, true)
        end
        return code, body
    end


    --- Replaces set_current_peer of ngx.balancer: Lua calls it for every connect.
    function wrapped.peer(host, port, ...)
        local ctx = not in_run and ngx.ctx.api_ctx
        in_run = false
        if ctx and str_sub(host, 1, 5) ~= "unix:" then
            local caller = debug.getinfo(2, "S")
            deps.passed_by(host .. ":" .. tostring(port), caller and caller.short_src or "?")
            keep_counted(ctx, { host = host, port = port })
        end
        return own.peer(host, port, ...)
    end


    -- nginx's own word about a request that has not passed `run`: has it reached an upstream?
    -- One that nginx redirected may have, before it got this ctx.
    local function look(ctx)
        if ctx._drain_run or is_session then
            return
        end
        local addr = ngx.var.upstream_addr
        if addr and addr ~= "" and str_sub(addr, 1, 5) ~= "unix:" and not ngx.req.is_internal() then
            deps.passed_by(addr, "nginx.conf")
        end
    end


    --- Replaces push of apisix.core.event. APISIX's plugin `ai` must not replace the functions
    -- that lead to pick_server and run.
    function wrapped.push(...)
        local apisix = deps.apisix
        local handle, connect = apisix.handle_upstream, apisix.http_balancer_phase
        own.push(...)
        apisix.handle_upstream, apisix.http_balancer_phase = handle, connect
    end


    function wrapped.log()
        in_run = false
        local ctx = ngx.ctx.api_ctx
        if ctx then
            if held[ctx] and ctx._drain and ngx.status == 502 then
                try(retried, pick, ctx)
            elseif held[ctx] then
                try(leave, inflight, ctx, true)
            else
                try(look, ctx)
            end
        end
        return own_log()
    end


    function wrapped.header()
        local ctx = ngx.ctx.api_ctx
        if ctx and held[ctx] then
            try(begin, kinds, ctx)
        elseif ctx then
            try(look, ctx)
        end
        return own_header()
    end


    return wrapped
end


return _M
