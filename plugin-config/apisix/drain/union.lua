--- Merges the statements of all workers about an entry, so that no reason against a seal is lost.
-- The largest number of places counts. A place that is sole for one worker is sole. The result has
-- each list of other choices that any worker has.
local word_text = require("apisix.drain.word_text")
local json      = require("apisix.drain.json")
local max       = math.max
local concat    = table.concat
local md5       = ngx.md5
local str_match = string.match
local str_gmatch = string.gmatch
local str_sub   = string.sub

-- the most cached results; a cache helps, because workers mostly agree and statements mostly last
local REMEMBERED = 4096

local _M = {}
local known, known_n = {}, 0
local as_is = { text = function(self) return self.json end }


local function add(all, text)
    local places, cut, sole, succeeded, others =
        str_match(text, "^(%d+) (%d+) (%S*) (%S*) (%S*)$")
    all.places, all.cut = max(all.places, tonumber(places)), max(all.cut, tonumber(cut))
    for to, names in pairs({ [all.sole] = sole, [all.succeeded] = succeeded }) do
        for name in str_gmatch(names, "[^;]+") do
            to[name] = true
        end
    end
    for n, list in str_gmatch(others, "(%d+)/([^;]+)") do
        all.others[list] = max(all.others[list] or 0, tonumber(n))
    end
end


local function together(texts)
    local all = { places = 0, cut = 0, sole = {}, succeeded = {}, others = {} }
    for _, text in ipairs(texts) do
        add(all, text)
    end
    local others = json.list()
    for i, list in ipairs(word_text.sorted(all.others)) do
        if i > word_text.LISTS then
            all.cut = all.cut + all.others[list]
        else
            local more, names = str_match(list, "^(%d+)/(.*)$")
            local nodes = json.list()
            for name in str_gmatch(names, "[^,]+") do
                nodes[#nodes + 1] = name
            end
            others[i] = { places = all.others[list], nodes = nodes, more = tonumber(more) }
        end
    end
    all.sole = word_text.sorted(all.sole, word_text.NAMES)
    all.succeeded = word_text.sorted(all.succeeded, word_text.NAMES)
    all.others = others
    return all
end


-- The same words have the same tag in every worker, because all parts of the key are sorted.
local function told(texts, hidden, key)
    local all = together(texts)
    return {
        json = '"places":' .. all.places .. ',"sole":' .. json.encode(all.sole)
               .. ',"succeeded":' .. json.encode(all.succeeded) .. ',"hidden":' .. hidden
               .. ',"others":' .. json.encode(all.others) .. ',"cut":' .. all.cut,
        tag = str_sub(md5(key), 1, 16),
    }
end


--- @tparam number said how many workers have reported
-- @tparam number asked how many workers serve
-- @tparam number hidden the largest number of places whose nodes one worker cannot read
-- @tparam table texts their texts, see word_text.lua
-- @tparam boolean l4 whether no L4 is uncovered: see l4.lua
-- @treturn table for json.encode; `tag` identifies the words of all workers, and is nil until all
--   have reported
function _M.of(said, asked, hidden, texts, l4)
    local set = {}
    for _, text in ipairs(texts) do
        set[text] = true
    end
    local distinct = word_text.sorted(set)
    local key = hidden .. " " .. concat(distinct, "\n")
    local one = known[key]
    if not one then
        if known_n >= REMEMBERED then
            known, known_n = {}, 0
        end
        one = told(distinct, hidden, key)
        known[key], known_n = one, known_n + 1
    end
    local tag = asked > 0 and said == asked and one.tag or nil
    return setmetatable({
        tag = tag,
        json = '{"said":' .. said .. ',"asked":' .. asked .. "," .. one.json
               .. (tag and ',"tag":"' .. tag .. '"' or "") .. (l4 and "" or ',"l4":false') .. "}",
    }, as_is)
end


return _M
