--- The node that a request may use.
--
-- In the access phase the pick only avoids denied nodes and counts nothing, because nginx may then
-- read the client's body for minutes. The guarantee rests on `settle`, right before every connect:
-- count up, THEN look at the deny-list. If the node is denied: count down, and pick another node.
--
-- Until a node has failed, the free nodes are offered with a successor for each denied one, then
-- alone. If the request knows none, the present configuration may have some. Otherwise successors
-- are offered (counted), then a draining node (a bypass, counted), then standbys. If health checks
-- fail on all listed successors, the others come last. Nodes that this request has tried, or whose
-- health checks fail, are no offer. A sealed node is never offered.
--
-- The state of a request is in request_state.lua.
local address      = require("apisix.drain.address")
local entries_mod  = require("apisix.drain.entries")
local request      = require("apisix.drain.request_state")
local level_of     = entries_mod.level
local DRAINING     = entries_mod.DRAINING
local ipairs       = ipairs
local state_of, use, offers = request.of, request.use, request.offers

local _M = { PLAIN = "plain", WITH = "with", FREE = "free", NEXT = "next", BYPASS = "bypass",
             NONE = "none" }
local mt = { __index = _M }
-- if APISIX picks no node from one of these offers, another offer may follow
local HAS_MORE = { [_M.WITH] = true, [_M.FREE] = true, [_M.NEXT] = true }
_M.HAS_MORE = HAS_MORE


--- @tparam table deps { entries, inflight, plans, count = function("moved", "bypasses",
-- "succeeded" or "refused"), present = function(base) -> conf, version: see present.of }
function _M.new(deps)
    return setmetatable({
        entries = deps.entries, inflight = deps.inflight, plans = deps.plans,
        count = deps.count, present = deps.present,
    }, mt)
end


-- Returns the plan of the present configuration if it has a free node, which is better than a
-- bypass: a request's list of nodes is as old as the request. Also if only the present plan has a
-- successor or a draining node, which is better than a refusal. Otherwise returns the old plan.
local function renew(self, ctx, plan, set)
    local state = state_of(ctx)
    if state.renewed then
        return plan
    end
    state.renewed = true

    local conf, version = self.present(state.base)
    if not conf then
        return plan
    end
    local new = self.plans:of(ctx.upstream_key, version, conf, set)
    local free = not new.denied or offers(state, new.free)
    if not free and (plan.next or plan.soft or not (new.next or new.soft)) then
        return plan
    end
    state.base, state.version = conf, version
    -- the health checker does not know these nodes
    ctx.up_checker = nil
    return new
end


-- Is one of the nodes not known to be down? APISIX's health checker answers nil for a new node.
local function has_up(ctx, base, nodes)
    local active = base.checks and base.checks.active or {}
    for _, node in ipairs(nodes) do
        if ctx.up_checker:get_target_status(node.host, active.port or node.port, active.host)
           ~= false then
            return true
        end
    end
    return false
end


-- The health checker for a variant with successors: APISIX's would leave them out, and log reports.
local function checker_of(variant, checker)
    if variant.checked_by ~= checker then
        variant.checked_by = checker
        variant.checker = setmetatable({}, { __index = function(mine, name)
            local value = checker[name]
            if type(value) ~= "function" then
                return value
            end
            mine[name] = function(_, host, port, ...)
                return variant.up[host .. ":" .. port] or value(checker, host, port, ...)
            end
            return mine[name]
        end })
    end
    return variant.checker
end


--- Before APISIX picks: offers the nodes it may choose from.
-- @tparam string|nil failed the last offer, if APISIX found no node in it
-- @tparam boolean connecting true right before a connect
-- @treturn string|nil the offer; nil if the last offer failed and there is no other
function _M:prepare(ctx, failed, connecting)
    local state = ctx._drain
    local base = state and state.base
    local version = base and state.version or ctx.upstream_version
    base = base or ctx.upstream_conf

    -- the access phase does not read the dictionary first: nearly every request has no denied
    -- node, and settle checks again
    local set = connecting and self.entries:current() or self.entries.set
    local plan = self.plans:of(ctx.upstream_key, version, base, set)
    if plan.denied and not connecting then
        set = self.entries:current()
        plan = self.plans:of(ctx.upstream_key, version, base, set)
    end
    if not plan.denied and not plan.free and not (state and state.base) then
        return _M.PLAIN
    end

    state = state_of(ctx)
    if plan.denied and connecting and not offers(state, plan.free) then
        plan = renew(self, ctx, plan, set)
    end
    state.next = nil
    if not plan.denied then
        use(ctx, plan.free)
        return _M.PLAIN
    end
    local free, conf = plan.free, state.base
    -- if all nodes are down, APISIX ignores their health
    local checks = ctx.up_checker and has_up(ctx, conf, conf.nodes)
    local is_up = not (free and ctx.up_checker) or has_up(ctx, conf, free.main)
    state.down = state.down or checks and not is_up
    state.unfit = state.unfit or checks and plan.own and not has_up(ctx, conf, plan.own)
    if plan.with and is_up and not (failed or state.retried or state.unfit) then
        use(ctx, plan.with)
        state.checker = ctx.up_checker and (state.checker or ctx.up_checker)
        ctx.up_checker = state.checker and checker_of(plan.with, state.checker)
        state.next = plan.with
        return _M.WITH
    end
    failed = failed ~= _M.WITH and failed or nil
    if free and (failed or state.down or not offers(state, free)) then
        local rest = self.plans:of(ctx.upstream_key, state.version, conf, set, true)
        plan = (rest.next or rest.soft) and rest or plan
    end
    if plan.free and not failed and (not plan.soft or offers(state, plan.free)) then
        use(ctx, plan.free)
        return _M.FREE
    end
    if offers(state, plan.next) and failed ~= _M.NEXT
       and not (state.unfit and offers(state, plan.soft)) then
        use(ctx, plan.next)
        -- the health checker does not know these nodes
        ctx.up_checker = nil
        state.next = plan.next
        return _M.NEXT
    end
    -- earlier offers had no node left: a draining node still serves, which is better than an error
    if plan.soft and failed ~= _M.BYPASS then
        use(ctx, plan.soft)
        return _M.BYPASS
    end
    return not failed and _M.NONE or nil
end


-- Has the request tried the server before? A new picker does not know that, so it is told, as
-- APISIX does before a retry.
local function passes_over(ctx, addr, offered)
    local state, picker = ctx._drain, ctx.server_picker
    if not (state and state.tried and state.tried[addr.id] and picker and picker.after_balance)
       or offered == _M.BYPASS then
        return false
    end
    picker.after_balance(ctx, true)
    return true
end


-- Is this server of the offer a successor?
local function is_named(state, addr)
    return state.next and (not state.next.named or state.next.named[addr.id])
end


--- Counts the request on a server without any check.
function _M:hold(ctx, server)
    self.inflight:enter(address.of(server.host, server.port), ctx)
end


--- After a failure of the plugin: counts a request as late if its server is sealed. Uses this
-- worker's last copy of the deny-list, because loading a new copy may be what failed.
function _M:passed(server)
    local set = self.entries.set
    if set.n > 0 then
        self.entries:passed(set, address.of(server.host, server.port))
    end
end


--- Right before a connect: count up, THEN look at the deny-list.
-- @tparam string|nil offered the result of prepare for this pick; nil after the access phase's pick
-- @treturn boolean true if the request may connect to this server. If false, the request is not
--   counted on the server, and another server has to be picked
function _M:settle(ctx, server, offered)
    local addr = address.of(server.host, server.port)
    if offered and passes_over(ctx, addr, offered) then
        return false
    end

    self.inflight:enter(addr, ctx)
    local set = self.entries:current()
    if set.n == 0 then
        return true
    end

    local level = level_of(set, addr)
    local state = ctx._drain
    if not level then
        if state and not state.succeeded and is_named(state, addr) then
            state.succeeded = true
            self.count("succeeded")
        end
        return true
    end
    if level == DRAINING and offered == _M.BYPASS then
        self.entries:bypassed(set, addr)
        self.count("bypasses")
        return true
    end

    self.inflight:leave(ctx)
    request.drop_picker(ctx)
    return false
end


--- After a node has failed: counts the request down from that node, and notes the node as tried.
function _M:retried(ctx)
    local addr = self.inflight:leave(ctx, true)
    if addr then
        local state = state_of(ctx)
        state.tried = state.tried or {}
        state.tried[addr.id], state.retried = true, true
        if is_named(state, addr) then
            self.plans:failed(addr.id)
        end
    end
end


--- Undoes every change to a request after a failure: APISIX continues without the plugin.
function _M.forsake(ctx)
    local state = ctx._drain
    if state and state.base then
        ctx.upstream_conf, ctx.upstream_version = state.base, state.version
    end
    ctx._drain = nil
end


return _M
