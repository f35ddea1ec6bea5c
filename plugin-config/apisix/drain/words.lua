--- Workers' words, as they are kept in the dictionary of counts, by the number of the process: no
-- other process ever inherits one.
--
--   g|number   the generation of the deny-list that its word is about; absent: it has not spoken
--   t|number   the word: "generation hidden", then a line for each entry, "id" and its text (about.lua)
local union     = require("apisix.drain.union")
local setmetatable = setmetatable
local ipairs    = ipairs
local pairs     = pairs
local tonumber  = tonumber
local max       = math.max
local concat    = table.concat
local str_match = string.match
local str_gmatch = string.gmatch

local _M = {}
local mt = { __index = _M }
-- what was parsed last, by the number of the process
local parsed = {}


--- Tells a word. @treturn boolean false: there is no room, and this worker has not spoken
function _M.tell(dict, number, gen, about, hidden)
    local lines = { gen .. " " .. hidden }
    for id, word in pairs(about) do
        lines[#lines + 1] = id .. " " .. word:text()
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
    for id, line in str_gmatch(text, "\n(%S+) ([^\n]*)") do
        word.of[id] = line
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


--- The words of the workers that serve, as they are now.
function _M.read(dict, living)
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
            self.list[#self.list + 1] = word
        end
    end
    parsed = kept
    return setmetatable(self, mt)
end


--- What they say of an entry.
-- @tparam string id
-- @tparam number|nil since the change since which it is what it is: what was said before does not count
-- @treturn table see union.of
function _M:of(id, since)
    local said, hidden, texts = 0, 0, {}
    for _, word in ipairs(self.list) do
        local text = since and word.gen >= since and word.of[id]
        if text then
            said, hidden = said + 1, max(hidden, word.hidden)
            texts[said] = text
        end
    end
    return union.of(said, self.asked, hidden, texts)
end


return _M
