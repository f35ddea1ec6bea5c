--- Which node a request may have. APISIX goes on choosing; it is only given fewer nodes to choose
-- from, by a copy of the upstream's configuration that lives as long as the deny-list is the same.
--
-- A node is free (no entry), draining or sealed. The free ones are offered; when there is none, or
-- this request has tried them all, the draining ones are (a bypass, counted); sealed ones never.
--
-- The guarantee rests on the order in settle: count up, then look at the deny-list.
local address      = require("apisix.drain.address")
local entries_mod  = require("apisix.drain.entries")
local level_of     = entries_mod.level
local DRAINING     = entries_mod.DRAINING
local SEALED       = entries_mod.SEALED
local ngx          = ngx
local ngx_now      = ngx.now
local setmetatable = setmetatable
local ipairs       = ipairs
local pairs        = pairs
local concat       = table.concat

-- a plan that no request used for so long is dropped, seconds
local PLAN_IDLE = 600

local _M = { PLAIN = "plain", FREE = "free", BYPASS = "bypass", NONE = "none" }
local mt = { __index = _M }


--- @tparam table entries from entries.new
-- @tparam table inflight from inflight.new
-- @tparam function count called with "moved", "bypasses" or "refused"
function _M.new(entries, inflight, count)
    return setmetatable({
        entries = entries, inflight = inflight, count = count,
        -- by configuration object. Strong keys, dropped by age: a copy leads back to the original
        -- (its `parent`), so weak keys would never let go
        plans = {}, versions = 0,
    }, mt)
end


local function variant_of(self, base, nodes, usable)
    if #nodes == 0 then
        return nil
    end

    local conf, ids = base, {}
    for i, node in ipairs(nodes) do
        ids[i] = address.of(node.host, node.port).id
    end
    if #nodes < #base.nodes then
        conf = {}
        for key, value in pairs(base) do
            conf[key] = value
        end
        conf.nodes = nodes
        conf.nodes_ref = nodes
        -- APISIX derives the number of retries from the nodes it sees; those kept for last count
        if not base.retries or base.retries < 0 then
            conf.retries = usable - 1
        end
    end

    -- least_conn shares one heap between all pickers of an upstream, and a new picker removes the
    -- nodes it does not know from it. A version of its own makes APISIX build a picker whenever
    -- the nodes change, also back to all of them
    if conf ~= base or base.type == "least_conn" then
        self.versions = self.versions + 1
        return { conf = conf, ids = ids, suffix = "#drain" .. self.versions }
    end
    return { conf = conf, ids = ids }
end


local function classify(self, base, set, last)
    local free, soft, barred = {}, {}, {}
    for _, node in ipairs(base.nodes) do
        local addr = address.of(node.host, node.port)
        local level = level_of(set, addr)
        if not level then
            free[#free + 1] = node
        else
            barred[#barred + 1] = level .. addr.id
            if level == DRAINING then
                soft[#soft + 1] = node
            end
        end
    end

    -- a deny-list that changed elsewhere must not cost this upstream its pickers
    local barred_text = concat(barred, ",")
    if last and last.nodes == base.nodes and last.barred == barred_text then
        last.set = set
        return last
    end

    local plan = { set = set, nodes = base.nodes, barred = barred_text, denied = #barred > 0 }
    if plan.denied then
        plan.free = variant_of(self, base, free, #free + #soft)
        plan.soft = variant_of(self, base, soft, #free + #soft)
    elseif last and base.type == "least_conn" then
        plan.free = variant_of(self, base, free, #free)
    end
    return plan
end


local function plan_for(self, base, set)
    local plan = self.plans[base]
    if not plan or plan.set ~= set or plan.nodes ~= base.nodes then
        plan = classify(self, base, set, plan)
        self.plans[base] = plan
    end
    plan.used = ngx_now()
    return plan
end


-- The picker a request is bound to was made for other nodes. Its claim on the server it gave is
-- released (after_balance with true does that and nothing else of note in every algorithm) and
-- what it remembers of tried servers goes with it: those are kept in ctx._drain.tried.
local function drop_picker(ctx)
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


local function use(ctx, variant)
    local state = ctx._drain
    if not state.base then
        state.base, state.version = ctx.upstream_conf, ctx.upstream_version
    end

    local conf, version = state.base, state.version
    if variant then
        conf = variant.conf
        if variant.suffix then
            if variant.base_version ~= version then
                variant.base_version, variant.version = version, version .. variant.suffix
            end
            version = variant.version
        end
    end

    if ctx.upstream_conf ~= conf or ctx.upstream_version ~= version then
        drop_picker(ctx)
        ctx.upstream_conf, ctx.upstream_version = conf, version
    end
end


local function all_tried(ctx, variant)
    local tried = ctx._drain.tried
    if not tried then
        return false
    end
    for _, id in ipairs(variant.ids) do
        if not tried[id] then
            return false
        end
    end
    return true
end


--- Before APISIX picks: offers the nodes it may choose from.
-- @tparam string|nil failed what was offered before, when APISIX found no node in it
-- @treturn string|nil what is offered; nil after a failure that nothing else can mend
function _M:prepare(ctx, failed)
    local state = ctx._drain
    local base = state and state.base or ctx.upstream_conf
    if not state or not state.base then
        -- nothing is denied as far as this worker knows; settle finds out whether that is still so
        if self.entries:guess().n == 0
           and not (base.type == "least_conn" and self.plans[base]) then
            return _M.PLAIN
        end
    end

    local plan = plan_for(self, base, self.entries:current())
    if not plan.denied and not plan.free and not (state and state.base) then
        -- entries, but none of this upstream: the most frequent case costs no table
        return _M.PLAIN
    end

    ctx._drain = state or {}
    if not plan.denied then
        use(ctx, plan.free)
        return _M.PLAIN
    end

    if failed then
        -- the free nodes gave none (all tried, say): a serving draining one beats an error
        if plan.soft and failed == _M.FREE then
            use(ctx, plan.soft)
            return _M.BYPASS
        end
        return nil
    end
    if plan.free and not (plan.soft and all_tried(ctx, plan.free)) then
        use(ctx, plan.free)
        return _M.FREE
    end
    if plan.soft then
        use(ctx, plan.soft)
        return _M.BYPASS
    end
    return _M.NONE
end


-- The picker forgot that this request has tried the server already (it is a new one, made when the
-- nodes changed): tell it, as APISIX does before a retry.
local function tried_again(ctx, server, offered)
    local state, picker = ctx._drain, ctx.server_picker
    if offered ~= _M.FREE or not (state and state.tried) or not (picker and picker.after_balance)
       or not state.tried[address.of(server.host, server.port).id] then
        return false
    end
    picker.after_balance(ctx, true)
    return true
end


--- Counts the request on a server without asking anything.
function _M:hold(ctx, server)
    local addr = address.of(server.host, server.port)
    local holder = ngx.ctx
    ctx._drain_key = self.inflight:enter(addr, holder)
    ctx._drain_holder, ctx._drain_addr, ctx._drain_at = holder, addr, ngx_now()
    return addr
end


--- After APISIX picked: count up, THEN look at the deny-list.
-- @treturn boolean true when the request may have this server; false: it was counted down again,
--   and another one has to be picked
function _M:settle(ctx, server, offered)
    if tried_again(ctx, server, offered) then
        return false
    end

    local addr = self:hold(ctx, server)
    local set = self.entries:current()
    if set.n == 0 then
        return true
    end

    local level = level_of(set, addr)
    if not level then
        return true
    end
    if level == DRAINING and offered == _M.BYPASS then
        ctx._drain.bypass = true
        self.entries:bypassed(set, addr)
        self.count("bypasses")
        return true
    end

    self:release(ctx)
    drop_picker(ctx)
    return false
end


--- Counts down whatever the request holds. Safe to call at any time, any number of times.
function _M:release(ctx)
    local key = ctx._drain_key
    if key then
        local holder = ctx._drain_holder
        ctx._drain_key, ctx._drain_holder = nil, nil
        self.inflight:leave(key, holder)
    end
end


--- A retry: the request leaves the node that failed it.
function _M:retried(ctx)
    local addr = ctx._drain_addr
    self:release(ctx)
    if addr then
        local state = ctx._drain or {}
        state.tried = state.tried or {}
        state.tried[addr.id] = true
        state.bypass = nil
        ctx._drain, ctx._drain_addr = state, nil
    end
end


--- Was the node denied after it was picked, while nginx was reading the body of the request?
-- Nothing was sent yet, so the request can move: always off a sealed node, off a draining one
-- when another can be picked.
function _M:is_late(ctx)
    if not ctx._drain_key then
        return false
    end

    local set = self.entries:current()
    local level = set.n > 0 and level_of(set, ctx._drain_addr)
    if not level then
        return false
    end
    if level == SEALED then
        return true
    end
    local state = ctx._drain
    if state and state.bypass then
        return false
    end
    return plan_for(self, state and state.base or ctx.upstream_conf, set).free ~= nil
end


--- Takes the request off its node, as if it had never been picked.
function _M:unpick(ctx)
    self:release(ctx)
    ctx._drain_addr = nil
    drop_picker(ctx)
end


--- Undoes every change to a request, for when we failed: APISIX goes on as if we were not there.
function _M.forsake(ctx)
    local state = ctx._drain
    if state and state.base then
        ctx.upstream_conf, ctx.upstream_version = state.base, state.version
    end
    ctx._drain = nil
end


--- The response is an upgrade: the connection is long-lived from here on.
function _M:upgraded(ctx)
    local key = ctx._drain_key
    if key then
        ctx._drain_key = self.inflight:lengthen(key, ctx._drain_holder)
    end
end


--- Drops plans that nobody uses any more.
function _M:sweep()
    local now = ngx_now()
    for base, plan in pairs(self.plans) do
        if now - plan.used > PLAN_IDLE then
            self.plans[base] = nil
        end
    end
end


return _M
