--- The places of one item of the configuration, and the upstreams that the item refers to. A place
-- is a list of nodes that APISIX picks from: an upstream, or the nodes written into a route, a
-- service, or a traffic-split rule of any object that can hold plugins.
local nodes_mod = require("apisix.drain.nodes")
local ipairs    = ipairs
local type      = type
local tostring  = tostring
local str_match = string.match
local str_gsub  = string.gsub

local _M = {}


--- @tparam string kind of object
-- @tparam table item as core.config holds it
-- @tparam function rest yields to requests when that is due
-- @treturn table { places, refs }: a place is { conf, name, upstream, list, moves }. `upstream` is
--   the id of an upstream, which counts only while something refers to it. `list` holds the nodes,
--   nil if they have to be looked up (`moves`)
function _M.of(kind, item, rest)
    local places, refs = {}, {}
    local value = type(item) == "table" and item.value
    if type(value) ~= "table" or value.status == 0 then
        return { places = places, refs = refs }
    end

    local id = tostring(value.id or str_match(item.key or "", "([^/]+)$"))
    -- `kind/id` without the characters that separate names in a line (word_text.lua)
    local name = kind .. "/" .. str_gsub(id, "[^%w._-]", "_")
    local function place(conf, within, upstream)
        local list, moves = nodes_mod.of(conf, nil, rest)
        places[#places + 1] = {
            conf = conf, name = name .. within, upstream = upstream, list = list, moves = moves,
        }
    end
    if kind == "upstreams" then
        place(value, "", id)
        return { places = places, refs = refs }
    end

    local function refer(conf, ref, within)
        if type(conf) == "table" then
            place(conf, within)
        elseif ref then
            refs[#refs + 1] = tostring(ref)
        end
    end
    refer(value.upstream, value.upstream_id, "")
    local split = type(value.plugins) == "table" and value.plugins["traffic-split"]
    for _, rule in ipairs(type(split) == "table" and split.rules or {}) do
        local choices = rule.weighted_upstreams or {}
        for _, choice in ipairs(choices) do
            -- a choice of weight 0 gets requests only if none has a weight
            if choice.weight ~= 0 or not nodes_mod.top_of(choices) then
                refer(choice.upstream, choice.upstream_id, "/traffic-split")
            end
        end
    end
    return { places = places, refs = refs }
end


return _M
