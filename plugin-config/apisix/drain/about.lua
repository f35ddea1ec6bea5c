--- What there is to say about each entry of a deny-list, place by place.
local level_of = require("apisix.drain.entries").level
local ipairs   = ipairs

-- other choices that are named, of a place and of an entry
local OTHERS = 4

local _M = {}


--- The deny-list at one moment, for what takes longer: the worker's copy goes on changing.
-- @tparam table list entries
-- @treturn table set { ips }, for add
-- @treturn table { [entry id] = { places, sole, others = { "ip|port", … } } }
function _M.new(list)
    local ips, about = {}, {}
    for _, entry in ipairs(list) do
        about[entry.id] = { places = 0, sole = 0, others = {} }
        local same = ips[entry.ip]
        if same then
            same[#same + 1] = entry
        else
            ips[entry.ip] = { entry }
        end
    end
    return { ips = ips }, about
end


local function free_of(list, set)
    local free = {}
    for _, node in ipairs(list) do
        if #free < OTHERS and not level_of(set, node) then
            free[#free + 1] = node.ip .. "|" .. (node.port or "")
        end
    end
    return free
end


local function add(word, free)
    word.places = word.places + 1
    if #free == 0 then
        word.sole = word.sole + 1
    end
    for _, id in ipairs(free) do
        if #word.others < OTHERS and not word.others[id] then
            word.others[id] = true
            word.others[#word.others + 1] = id
        end
    end
end


--- Adds one place to every entry that it is about: once, however many nodes an entry covers.
-- @tparam table list its nodes, { ip, port } each
function _M.add(about, set, list)
    local free, done
    for _, node in ipairs(list) do
        for _, entry in ipairs(set.ips[node.ip] or {}) do
            if (not entry.port or entry.port == node.port) and not (done and done[entry.id]) then
                done = done or {}
                done[entry.id] = true
                free = free or free_of(list, set)
                add(about[entry.id], free)
            end
        end
    end
end


return _M
