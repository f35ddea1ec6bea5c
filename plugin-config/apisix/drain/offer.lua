--- The nodes that an upstream offers under one deny-list. A node is free (no entry), draining or
-- sealed.
local address     = require("apisix.drain.address")
local entries_mod = require("apisix.drain.entries")
local successors  = require("apisix.drain.successors")
local nodes_mod   = require("apisix.drain.nodes")
local top_of, copy_of = nodes_mod.top_of, nodes_mod.copy_of
local level_of    = entries_mod.level
local DRAINING    = entries_mod.DRAINING
local concat      = table.concat
local sort        = table.sort
local written     = address.written

local _M = {}


--- @treturn boolean whether an entry of the set is about one of these nodes
function _M.touches(set, nodes)
    if set.n == 0 then
        return false
    end
    for i = 1, #nodes do
        local node = nodes[i]
        if level_of(set, address.of(node.host, node.port)) then
            return true
        end
    end
    return false
end


--- The nodes that are no standbys, and the standbys. `top`: see nodes.top_of.
function _M.split(nodes, top)
    local main, standbys = {}, {}
    for _, node in ipairs(nodes) do
        local is_main = not top or (node.weight ~= 0 and (node.priority or 0) >= top)
        local list = is_main and main or standbys
        list[#list + 1] = node
    end
    return main, standbys
end


--- The nodes; copies with weight 1 if all have weight 0, since chash would fail every request.
function _M.shared(nodes)
    if top_of(nodes) then
        return nodes
    end
    local list = {}
    for i, node in ipairs(nodes) do
        list[i] = copy_of(node)
        list[i].weight = 1
    end
    return list
end


-- A node at the address of a successor. APISIX derives upstream_host again from this copy.
local function follower(node, addr, weight)
    local copy = copy_of(node)
    copy.host, copy.port = written(addr.ip), addr.port
    copy.weight, copy.priority, copy.upstream_host = weight, node.priority or 0, nil
    return copy
end


-- Adds the other DNS records of a denied node that has a name: APISIX gives each request only one.
local function other_records(records, set, node, met, free)
    local n = #free
    for _, ip in ipairs(node.domain and records(node.domain) or {}) do
        local addr = address.of(ip, node.port)
        if not met[addr.id] and not level_of(set, addr) then
            met[addr.id] = follower(node, addr, node.weight)
            free[#free + 1] = met[addr.id]
        end
    end
    return #free > n
end


-- A free successor for each denied node that has one which no other node has (`met`). The nodes
-- with the fewest choose first: later entries name more. Also returns those that are listed.
local function stand_ins(set, nodes, met, marks, failing)
    local all, list, own = {}, {}, {}
    for i, node in ipairs(nodes) do
        all[i] = { node = node, at = i }
        successors.add(set, address.of(node.host, node.port), level_of, {}, all[i])
        for _, addr in ipairs(all[i]) do
            own[#own + 1] = met[addr.id]
        end
    end
    sort(all, function(a, b) return #a < #b or #a == #b and a.at < b.at end)
    for _, found in ipairs(all) do
        for _, addr in ipairs(found) do
            if not (met[addr.id] or failing[addr.id]) then
                met[addr.id], marks[#marks + 1] = true, found.at .. ">" .. addr.id
                list[#list + 1] = {
                    node = found.node, by = follower(found.node, addr, found.node.weight),
                }
                break
            end
        end
    end
    return list, own
end


-- The successors of denied nodes, each once, without those in `met`: the free ones; the draining
-- ones, which still serve. `others`: if there are other nodes, none that failed a moment ago.
local function followers(set, nodes, met, failing, others)
    local free, fresh, soft, found = {}, {}, {}, { soft = {} }
    for _, node in ipairs(nodes) do
        successors.add(set, address.of(node.host, node.port), level_of, met, found)
        for i = #free + 1, #found do
            free[i] = follower(node, found[i], 1)
            fresh[#fresh + 1] = not failing[found[i].id] and free[i] or nil
        end
        for i = #soft + 1, #found.soft do
            soft[i] = follower(node, found.soft[i], 1)
        end
    end
    return (next(fresh) or next(soft) or others) and fresh or free, soft
end


--- The nodes of an upstream of which some are denied.
-- @tparam table set from entries
-- @tparam table nodes of the upstream
-- @tparam table plans { records, failing }, see plan.new
-- @tparam boolean|nil spent true: no free node can be used, except for standbys
-- @treturn table
--   free        nodes
--   own         listed successors, else draining nodes: their health tells of the other successors
--   stand_ins   of the denied nodes: { node, by = its successor, as a node }
--   following   the free successors of the denied nodes, if only standbys are free
--   soft        the draining nodes and successors, and standbys: APISIX picks by priority
--   mark        a text about all these lists: equal marks mean equal lists
function _M.of(set, nodes, plans, spent)
    local free, soft, denied, marks, met, lost = {}, {}, {}, {}, {}, {}
    for i, node in ipairs(nodes) do
        local addr = address.of(node.host, node.port)
        local level = level_of(set, addr)
        if not level then
            free[#free + 1], met[addr.id] = node, node
        else
            denied[#denied + 1] = node
            soft[#soft + 1] = level == DRAINING and node or nil
        end
        marks[i] = addr.id .. " " .. (node.weight or "") .. " " .. (node.priority or "")
                   .. " " .. (level or "")
    end
    for _, node in ipairs(denied) do
        if not other_records(plans.records, set, node, met, free) then
            lost[#lost + 1] = node
        end
    end
    for i = #nodes - #denied + 1, #free do
        marks[#marks + 1] = free[i].host
    end

    local instead, own, following, ending, top = {}, {}, {}, {}, top_of(nodes)
    local main, standbys = _M.split(free, top)
    if spent then
        main, free = {}, standbys
    end
    if next(main) then
        instead, own = stand_ins(set, _M.split(lost, top), met, marks, plans.failing)
    else
        following, ending = followers(set, nodes, met, plans.failing, next(soft) or next(free))
    end
    own = next(own) and own or _M.split(soft, top)
    for _, node in ipairs(following) do
        marks[#marks + 1] = node.host .. ":" .. node.port
    end
    for _, node in ipairs(ending) do
        soft[#soft + 1], marks[#marks + 1] = node, node.host .. ":" .. node.port .. "s"
    end
    if not next(main) and (next(following) or next((_M.split(soft, top)))) then
        for _, node in ipairs(free) do
            soft[#soft + 1] = node
        end
        free = {}
    end
    return {
        free = free, stand_ins = instead, following = following, soft = soft, own = own,
        mark = concat(marks, ","),
    }
end


return _M
