--- A plan: the variants of an upstream's configuration under one deny-list. `free` has the free
-- nodes, `with` also a successor for each denied one, `next` the successors, `soft` the draining
-- nodes (offer.lua). APISIX still picks, among these nodes.
--
-- Plans are stored by version and key, the names under which APISIX caches its pickers, so that a
-- variant leads to the same picker in every request. The configuration object alone cannot be the
-- key: traffic-split makes one for every request, service discovery replaces its nodes in place.
-- APISIX's plugin `ai` makes a version for every URI: so an upstream that no entry concerns has no
-- plan, and the number of plans is bounded.
local address      = require("apisix.drain.address")
local offer        = require("apisix.drain.offer")
local nodes_mod    = require("apisix.drain.nodes")
local clock_now    = require("apisix.drain.host").now
local top_of, copy_of = nodes_mod.top_of, nodes_mod.copy_of
local ipairs       = ipairs
local next         = next
local max          = math.max
local min          = math.min

-- half of the plans that are stored at most. APISIX caches as many pickers
local HALF = 256
-- the most retries that successors add, if the upstream does not set `retries`
local TRIES = 2
-- how long successors that failed are skipped at most, if there is another choice, in seconds
local SKIP = 2

local _M = {}
local mt = { __index = _M }


-- the plan of an upstream that no entry concerns
local PLAIN = { denied = false }


-- Notes without a claim to memory: by lists of nodes, which live as long as APISIX keeps them.
local function notes()
    return setmetatable({}, { __mode = "k" })
end


-- A map that forgets what was not used for as long as HALF other items were.
local function map()
    return { young = {}, old = {}, n = 0 }
end


local function put(into, name, value)
    if into.young[name] == nil then
        if into.n == HALF then
            into.young, into.old, into.n = {}, into.young, 0
        end
        into.n = into.n + 1
    end
    into.young[name] = value
    return value
end


local function get(from, name)
    local value = from.young[name]
    if value == nil and from.old[name] ~= nil then
        value = put(from, name, from.old[name])
    end
    return value
end


--- @tparam function records the addresses of a name by the last answer, or nil; sends no query
function _M.new(records)
    return setmetatable({
        -- { [nodes] = set }: no entry of the set concerns these nodes
        plain = notes(),
        plans = map(), serial = 0, records = records,
        failing = {},       -- the ids of successors that failed a request, all until `till`
        -- upstreams of least_conn that were offered fewer nodes: the serial of their last plan, by
        -- the name of their heap. `epoch` goes up whenever an item is set
        heaps = map(), epoch = 0,
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
    local main = offer.split(nodes, top_of(nodes))
    for i, node in ipairs(main) do
        ids[i] = address.of(node.host, node.port).id
    end
    if nodes ~= base.nodes then
        conf = copy_of(base)
        conf.nodes, conf.nodes_ref, conf.retries = nodes, nodes, retries
    end
    return { conf = conf, version = version, main = main, ids = ids }
end


-- The free nodes and the successors that stand in for denied nodes. chash finds a node by its
-- address, so there the denied node stays in the ring, and the keys of the others do not move.
local function mixed(base, version, free, stand_ins, retries)
    local nodes, named, up, instead = copy_of(free), {}, {}, nil
    local port = base.checks and base.checks.active and base.checks.active.port
    for i, one in ipairs(stand_ins) do
        local node, by = one.node, one.by
        named[address.of(by.host, by.port).id] = true
        nodes[#free + i], up[by.host .. ":" .. (port or by.port)] = by, true
        if base.type == "chash" then
            nodes[#free + i], up[node.host .. ":" .. (port or node.port)] = node, true
            instead = instead or {}
            instead[address.of(node.host, node.port).id] = { nodes = { by } }
        end
    end
    local variant = variant_of(base, version, nodes, retries)
    variant.named, variant.up, variant.conf.instead = named, up, instead
    return variant
end


-- Records the inputs for which a plan is valid.
local function seen(self, plan, base, set)
    plan.set, plan.base, plan.nodes, plan.epoch = set, base, base.nodes, self.epoch
    return plan
end


-- The plan of an upstream whose nodes have no entry, and whose heap may lack some of them.
local function whole(self, last, name, base, set, serial)
    local plan = last
    if not last or last.serial ~= serial or last.base ~= base or last.nodes ~= base.nodes then
        plan = put(self.plans, name, {
            denied = false, serial = serial,
            free = variant_of(base, name .. "#drain" .. serial, base.nodes),
        })
    end
    return seen(self, plan, base, set)
end


--- Notes that a successor failed a request.
function _M:failed(id)
    if not self.failing[id] then
        self.failing[id], self.epoch = true, self.epoch + 1
        self.till = self.till or clock_now() + SKIP
    end
end


local function denied(self, last, name, key, base, set, spent)
    local offered = offer.of(set, base.nodes, self, spent)
    local free, following, soft = offered.free, offered.following, offered.soft

    -- a change of other entries, or a new list of the same nodes, must not cost this upstream
    -- its pickers
    local mark = offered.mark
    local plan = last
    if not last or last.mark ~= mark then
        self.serial = self.serial + 1
        local named = name .. "#drain" .. self.serial
        local retries = base.retries and base.retries >= 0 and base.retries or nil
        if not retries then
            -- APISIX's default would count only the nodes of one variant. A denied node counts too:
            -- the present configuration may have another one by the time of a retry (pick.lua)
            retries = max(#base.nodes, #free + #soft + min(#following, TRIES)) - 1
        end
        plan = put(self.plans, name, {
            denied = true, mark = mark,
            with = next(offered.stand_ins)
                   and mixed(base, named .. "w", free, offered.stand_ins, retries),
            free = next(free) and variant_of(base, named .. "f", free, retries),
            next = next(following) and variant_of(base, named .. "n", following, retries),
            soft = next(soft) and variant_of(base, named .. "s", soft, retries),
        })
        local heap = heap_of(base, key)
        if heap then
            put(self.heaps, heap, self.serial)
            self.epoch, self.plain = self.epoch + 1, notes()
        end
    end
    plan.own = next(offered.own) and offered.own
    return seen(self, plan, base, set)
end


--- Whether it is known that no entry of the set concerns the upstream of this request. Cheap enough
-- for every request. After false, the caller has to call `of`.
function _M:is_plain(ctx, set)
    return self.plain[ctx.upstream_conf.nodes] == set
end


--- The plan for an upstream. Costs two look-ups and builds nothing as long as nothing changed.
-- @tparam string key ctx.upstream_key
-- @tparam string version ctx.upstream_version
-- @tparam table base the configuration, as APISIX gave it to the request
-- @tparam table set from entries
-- @tparam boolean|nil spent see offer.of
-- @treturn table { denied, own = see offer.of, free = { conf, version, main, ids }?, with, next,
--   soft = alike? }: main, ids: its nodes that are no standbys. `with` has the ids of its
--   successors (`named`), and "host:port" of what APISIX's health checks must leave in (`up`)
function _M:of(key, version, base, set, spent)
    local nodes = base.nodes
    if self.plain[nodes] == set then
        return PLAIN
    end
    if self.till and self.till < clock_now() then
        self.failing, self.till, self.epoch = {}, nil, self.epoch + 1
    end
    local name = version .. (spent and "!#" or "#") .. key
    local plan = get(self.plans, name)
    if plan and plan.set == set and plan.base == base and plan.nodes == nodes
       and plan.epoch == self.epoch then
        return plan
    end

    if offer.touches(set, nodes) then
        return denied(self, plan, name, key, base, set, spent)
    end
    local heap = heap_of(base, key)
    local serial = heap and get(self.heaps, heap)
    if serial then
        return whole(self, plan, name, base, set, serial)
    end
    self.plain[nodes] = set
    return PLAIN
end


return _M
