--- What there is to say about each entry of a deny-list, place by place.
local level_of  = require("apisix.drain.entries").level
local setmetatable = setmetatable
local ipairs    = ipairs
local pairs     = pairs
local concat    = table.concat
local str_find  = string.find
local sort      = table.sort
local min       = math.min

-- so many other choices are named of a place, so many different lists of them of an entry, and so
-- many places by name
local OTHERS, LISTS, NAMES = 8, 16, 16

local _M = { LISTS = LISTS, NAMES = NAMES }
local word_mt = {}
word_mt.__index = word_mt


--- The deny-list at one moment, for what takes longer: the worker's copy goes on changing.
-- @tparam table list entries
-- @treturn table set { ips }, for add
-- @treturn table { [entry id] = what there is to say, see text }
function _M.new(list)
    local ips, about = {}, {}
    for _, entry in ipairs(list) do
        about[entry.id] = setmetatable({ places = 0, sole = {}, others = {} }, word_mt)
        local same = ips[entry.ip]
        if same then
            same[#same + 1] = entry
        else
            ips[entry.ip] = { entry }
        end
    end
    return { ips = ips }, about
end


-- "address:port", kept with the node
local function name_of(node)
    if not node.name then
        local ip = str_find(node.ip, ":", 1, true) and "[" .. node.ip .. "]" or node.ip
        node.name = node.port and ip .. ":" .. node.port or ip
    end
    return node.name
end


-- The other choices of a place: "more/address:port,…", in an order of their own, so that places
-- with the same ones are the same; nil where there is none.
local function free_of(list, set)
    local free, more = {}, 0
    for _, node in ipairs(list) do
        if not level_of(set, node) then
            if #free < OTHERS then
                free[#free + 1] = name_of(node)
            else
                more = more + 1
            end
        end
    end
    if #free == 0 then
        return nil
    end
    sort(free)
    return more .. "/" .. concat(free, ",")
end


local function add(word, name, free)
    word.places = word.places + 1
    if free then
        word.others[free] = (word.others[free] or 0) + 1
    else
        word.sole[#word.sole + 1] = name
    end
end


--- Adds one place to every entry that it is about: once, however many nodes an entry covers.
-- @tparam table list its nodes, { ip, port } each
-- @tparam string name of the place, of letters that text can keep apart
function _M.add(about, set, list, name)
    local free, looked, done
    for _, node in ipairs(list) do
        for _, entry in ipairs(set.ips[node.ip] or {}) do
            if (not entry.port or entry.port == node.port) and not (done and done[entry.id]) then
                done = done or {}
                done[entry.id] = true
                if not looked then
                    free, looked = free_of(list, set), true
                end
                add(about[entry.id], name, free)
            end
        end
    end
end


--- As one line: "places cut sole;… n/more/address:port,…;…", where `cut` places are left out. Two
-- workers leave out the same ones.
function word_mt:text()
    local lists, kept, cut = {}, {}, 0
    for free in pairs(self.others) do
        lists[#lists + 1] = free
    end
    sort(lists)
    for i, free in ipairs(lists) do
        if i > LISTS then
            cut = cut + self.others[free]
        else
            kept[i] = self.others[free] .. "/" .. free
        end
    end
    sort(self.sole)
    return self.places .. " " .. cut .. " " .. concat(self.sole, ";", 1, min(#self.sole, NAMES))
           .. " " .. concat(kept, ";")
end


return _M
