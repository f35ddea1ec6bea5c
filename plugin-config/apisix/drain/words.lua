--- Workers' words, as they are kept in the dictionary of counts, by the number of the process: no
-- other process ever inherits one.
--
--   g|number   the generation of the deny-list that its word is about; absent: it has not spoken
--   t|number   the word: "generation hidden", then a line for each entry,
--              "id places sole other,other,…"
local setmetatable = setmetatable
local ipairs    = ipairs
local pairs     = pairs
local tonumber  = tonumber
local max       = math.max
local concat    = table.concat
local str_match = string.match
local str_gmatch = string.gmatch
local json      = require("apisix.drain.json")

local OTHERS = 4

local _M = {}
local mt = { __index = _M }
-- what was parsed last, by the number of the process
local parsed = {}


--- Tells a word. @treturn boolean false: there is no room, and this worker has not spoken
function _M.tell(dict, number, gen, about, hidden)
    local lines = { gen .. " " .. hidden }
    for id, word in pairs(about) do
        lines[#lines + 1] = id .. " " .. word.places .. " " .. word.sole .. " "
                            .. concat(word.others, ",")
    end
    local ok = dict:safe_set("t|" .. number, concat(lines, "\n"))
               and dict:safe_set("g|" .. number, gen)
    if not ok then
        _M.void(dict, number)
    end
    return ok
end


--- Takes a word back.
function _M.void(dict, number)
    dict:delete("g|" .. number)
    dict:delete("t|" .. number)
end


local function parse(text)
    local gen, hidden = str_match(text, "^(%d+) (%d+)")
    local word = { text = text, gen = tonumber(gen), hidden = tonumber(hidden), of = {} }
    for id, places, sole, others in str_gmatch(text, "\n(%S+) (%d+) (%d+) ([^\n]*)") do
        word.of[id] = { places = tonumber(places), sole = tonumber(sole), others = others }
    end
    return word
end


--- Has each of these workers spoken for a generation, or a later one?
function _M.complete(dict, living, gen)
    for _, worker in ipairs(living) do
        if not worker.exiting and (dict:get("g|" .. worker.number) or -1) < gen then
            return false
        end
    end
    return true
end


--- The words of the workers that serve.
-- @tparam number gen words about an earlier generation of the deny-list are void
function _M.read(dict, living, gen)
    local self, kept = { list = {}, asked = 0 }, {}
    for _, worker in ipairs(living) do
        if not worker.exiting then
            self.asked = self.asked + 1
            local text = dict:get("t|" .. worker.number)
            local word = text and parsed[worker.number]
            if text and not (word and word.text == text) then
                word = parse(text)
            end
            kept[worker.number] = word or nil
            if word and word.gen >= gen then
                self.list[#self.list + 1] = word
            end
        end
    end
    parsed = kept
    return setmetatable(self, mt)
end


--- Adds to an entry, as told, what the workers say of it.
-- @tparam table told the entry as told
-- @tparam string id
function _M:into(told, id)
    local said, places, sole, hidden, others = 0, 0, 0, 0, json.list()
    for _, word in ipairs(self.list) do
        local of = word.of[id]
        if of then
            said, hidden = said + 1, max(hidden, word.hidden)
            places, sole = max(places, of.places), max(sole, of.sole)
            for ip, port in str_gmatch(of.others, "([^|,]+)|(%d*)") do
                if #others < OTHERS and not others[ip .. "|" .. port] then
                    others[ip .. "|" .. port] = true
                    others[#others + 1] = { ip = ip, port = tonumber(port) }
                end
            end
        end
    end
    told.word = {
        said = said, asked = self.asked,
        places = places, sole = sole, hidden = hidden, others = others,
    }
    return told
end


return _M
