--- A plan: the variants of an upstream's configuration under one deny-list. `free` has the free
-- nodes, `next` the successors of the denied nodes, `soft` the draining nodes (offer.lua). APISIX
-- still picks, among fewer nodes.
--
-- Plans are stored by (version, key), the names under which APISIX caches its pickers. So a variant
-- leads to the same picker in every request. The configuration object alone cannot be the key:
-- traffic-split makes one for every request, and service discovery replaces its nodes in place.
local address      = require("apisix.drain.address")
local offer        = require("apisix.drain.offer")
local setmetatable = setmetatable
local ipairs       = ipairs
local pairs        = pairs
local next         = next
local min          = math.min

-- a plan that no request used for this many sweeps is dropped
local MAX_IDLE = 10
-- the most retries that successors add, if the upstream does not set `retries`
local TRIES = 2

local _M = {}
local mt = { __index = _M }


--- @tparam function records the addresses of a name by the last answer, or nil; sends no query
function _M.new(records)
    return setmetatable({
        plans = {}, serial = 0, records = records,
        -- upstreams of least_conn that were offered fewer nodes, by the name of their heap;
        -- `epoch` goes up whenever an item is set
        heaps = {}, epoch = 0,
    }, mt)
end


-- least_conn shares one heap between all pickers of an upstream. A new picker removes the nodes
-- that it does not know from the heap. So each change of the nodes, even back to all of them, gets
-- a version of its own, which makes APISIX build a new picker.
local function heap_of(base, key)
    return base.type == "least_conn" and (base.resource_key or key) or nil
end


local function variant_of(base, version, nodes, retries)
    local conf, ids = base, {}
    if nodes ~= base.nodes then
        nodes = offer.shared(nodes)
    end
    for i, node in ipairs(nodes) do
        ids[i] = address.of(node.host, node.port).id
    end
    if nodes ~= base.nodes then
        conf = {}
        for field, value in pairs(base) do
            conf[field] = value
        end
        conf.nodes, conf.nodes_ref, conf.retries = nodes, nodes, retries
    end
    return { conf = conf, version = version, ids = ids }
end


local function store(self, key, version, plan)
    local by_key = self.plans[version]
    if not by_key then
        by_key = {}
        self.plans[version] = by_key
    end
    by_key[key] = plan
    return plan
end


-- Records the inputs for which a plan is valid.
local function seen(self, plan, base, set)
    plan.set, plan.base, plan.nodes = set, base, base.nodes
    plan.epoch, plan.idle = self.epoch, 0
    return plan
end


-- The plan of an upstream whose nodes have no entry.
local function undenied(self, plan, key, version, base, set)
    local heap = heap_of(base, key)
    local shrunk = heap and self.heaps[heap]
    if shrunk then
        shrunk.idle = 0
    end
    local serial = shrunk and shrunk.serial

    if not plan or plan.denied or plan.serial ~= serial
       or (serial and (plan.base ~= base or plan.nodes ~= base.nodes)) then
        local free = serial and variant_of(base, version .. "#drain" .. serial, base.nodes)
        plan = store(self, key, version, { denied = false, serial = serial, free = free })
    end
    return seen(self, plan, base, set)
end


local function denied(self, last, key, version, base, set)
    local offered = offer.of(set, base.nodes, self.records)
    local free, following, soft = offered.free, offered.following, offered.soft

    -- a change of other entries, or a new list of the same nodes, must not cost this upstream
    -- its pickers
    local mark = offered.mark
    local plan = last
    if not last or last.mark ~= mark then
        self.serial = self.serial + 1
        local named = version .. "#drain" .. self.serial
        local retries = base.retries and base.retries >= 0 and base.retries or nil
        if not retries then
            -- APISIX's default would count only the nodes of one variant, not those of all three
            retries = #free + #soft + min(#following, TRIES) - 1
        end
        plan = store(self, key, version, {
            denied = true, mark = mark,
            free = next(free) and variant_of(base, named .. "f", free, retries),
            next = next(following) and variant_of(base, named .. "n", following, retries),
            soft = next(soft) and variant_of(base, named .. "s", soft, retries),
        })
        local heap = heap_of(base, key)
        if heap then
            self.heaps[heap] = { serial = self.serial, idle = 0 }
            self.epoch = self.epoch + 1
        end
    end
    return seen(self, plan, base, set)
end


--- Whether a stored plan shows that no entry of the set concerns the upstream of this request.
-- Cheap enough for every request. After false, the caller has to call `of`.
function _M:is_plain(ctx, set)
    local by_key = self.plans[ctx.upstream_version]
    local plan = by_key and by_key[ctx.upstream_key]
    if not plan or plan.set ~= set or plan.denied or plan.free or plan.epoch ~= self.epoch then
        return false
    end
    local base = ctx.upstream_conf
    return plan.base == base and plan.nodes == base.nodes
end


--- The plan for an upstream. Costs two look-ups and builds nothing as long as nothing changed.
-- @tparam string key ctx.upstream_key
-- @tparam string version ctx.upstream_version
-- @tparam table base the configuration, as APISIX gave it to the request
-- @tparam table set from entries
-- @treturn table { denied, free = { conf, version, ids }?, next = the same?, soft = the same? }
function _M:of(key, version, base, set)
    local by_key = self.plans[version]
    local plan = by_key and by_key[key]
    if plan and plan.set == set and plan.base == base and plan.nodes == base.nodes
       and plan.epoch == self.epoch then
        plan.idle = 0
        return plan
    end

    if offer.touches(set, base.nodes) then
        return denied(self, plan, key, version, base, set)
    end
    return undenied(self, plan, key, version, base, set)
end


--- Drops plans and heaps that no request used for a while.
function _M:sweep()
    for version, by_key in pairs(self.plans) do
        for key, plan in pairs(by_key) do
            plan.idle = plan.idle + 1
            if plan.idle > MAX_IDLE then
                by_key[key] = nil
            end
        end
        if not next(by_key) then
            self.plans[version] = nil
        end
    end
    for heap, shrunk in pairs(self.heaps) do
        shrunk.idle = shrunk.idle + 1
        if shrunk.idle > MAX_IDLE then
            self.heaps[heap] = nil
        end
    end
end


return _M
