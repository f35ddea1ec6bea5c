--- Workers' words in the dictionary of counts, keyed by the number of the process, so that no other
-- process inherits one.
--
--   g|number       the generation of the deny-list that the worker knows. While this key exists,
--                  all statements of the worker are true in its configuration. Without the key,
--                  no statement of the worker counts
--   t|number       "hidden mark": the number of places that the worker cannot read, and how often
--                  it has taken its word back
--   t|number|part  lines of some entries: the id, the generation in which the line was written, and
--                  the text (word_text.lua). In parts, so that a change rewrites only one part
local word_text = require("apisix.drain.word_text")
local json      = require("apisix.drain.json")
local ngx       = ngx
local crc32     = ngx.crc32_short
local md5       = ngx.md5
local max       = math.max
local concat    = table.concat
local str_find  = string.find
local str_match = string.match
local str_gmatch = string.gmatch
local str_sub   = string.sub

local PARTS = 64
-- the most cached results; a cache helps, because workers mostly agree and statements mostly last
local REMEMBERED = 4096

local _M = {}
local mt = { __index = _M }
local known, known_n = {}, 0
local as_is = { text = function(self) return self.json end }


local function add(all, text)
    local places, cut, sole, succeeded, others, asked, more, found =
        str_match(text, "^(%d+) (%d+) (%S*) (%S*) (%S*) (%d+)/(%d+)/(%S*)$")
    all.places, all.cut = max(all.places, tonumber(places)), max(all.cut, tonumber(cut))
    all.asked, all.more = math.min(all.asked or 1e9, asked), max(all.more, tonumber(more))
    for to, names in pairs({
        [all.sole] = sole, [all.succeeded] = succeeded, [all.found] = found,
    }) do
        for name in str_gmatch(names, "[^;]+") do
            to[name] = true
        end
    end
    for n, list in str_gmatch(others, "(%d+)/([^;]+)") do
        all.others[list] = max(all.others[list] or 0, tonumber(n))
    end
end


-- Merges the statements of all workers about an entry, so that no reason against a seal is lost.
-- The largest number of places counts. A place that is sole for one worker is sole. The result has
-- each list of other choices that any worker has, and each way that any worker has found.
local function together(texts, hidden)
    local all = {
        places = 0, cut = 0, more = 0, sole = {}, succeeded = {}, found = {}, others = {},
    }
    for _, text in ipairs(texts) do
        add(all, text)
    end
    local others, found = json.list(), json.list()
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
    for i, text in ipairs(word_text.sorted(all.found)) do
        local way, node, place = str_match(text, "^(.*)>(.*)>(.*)$")
        found[i] = i <= word_text.WAYS and { way = way, node = node, place = place } or nil
        all.more = all.more + (found[i] and 0 or 1)
    end
    return '"places":' .. all.places .. ',"sole":'
           .. json.encode(word_text.sorted(all.sole, word_text.NAMES)) .. ',"succeeded":'
           .. json.encode(word_text.sorted(all.succeeded, word_text.NAMES)) .. ',"hidden":'
           .. hidden .. ',"others":' .. json.encode(others) .. ',"cut":' .. all.cut .. ',"ways":'
           .. json.encode({ asked = all.asked or 0, found = found, more = all.more })
end


--- The part that an entry is in.
function _M.part(id)
    return crc32(id) % PARTS
end


--- The line about an entry.
function _M.line(id, gen, text)
    return "\n" .. id .. " " .. gen .. " " .. text
end


--- Writes a part. The part counts once the worker has called `tell`.
-- @tparam table lines by id
-- @treturn boolean false: there is no room
function _M.write(dict, number, part, lines)
    local key = "t|" .. number .. "|" .. part
    if not next(lines) then
        dict:delete(key)
        return true
    end
    local list = {}
    for _, line in pairs(lines) do
        list[#list + 1] = line
    end
    list[#list + 1] = "\n"
    return dict:safe_set(key, concat(list)) == true
end


--- States that all parts are true. @treturn boolean false: there is no room
function _M.tell(dict, number, gen, hidden, mark)
    return dict:safe_set("t|" .. number, hidden .. " " .. mark) == true
           and dict:safe_set("g|" .. number, gen) == true
end


--- Takes a word back.
function _M.void(dict, number)
    dict:delete("g|" .. number)
end


--- Removes all statements of a process.
function _M.forget(dict, number)
    _M.void(dict, number)
    dict:delete("t|" .. number)
    for part = 0, PARTS - 1 do
        dict:delete("t|" .. number .. "|" .. part)
    end
end


--- Do all of these workers know a generation, or a later one?
function _M.complete(dict, living, gen)
    for _, worker in ipairs(living) do
        if not worker.exiting and (dict:get("g|" .. worker.number) or -1) < gen then
            return false
        end
    end
    return true
end


--- Reads which workers serve, and which of them have a word now.
-- @tparam table dict the counts
-- @tparam table living from workers.list
-- @tparam boolean l4 see l4.covered
function _M.read(dict, living, l4)
    local self = { dict = dict, list = {}, asked = 0, l4 = l4 }
    for _, worker in ipairs(living) do
        if not worker.exiting then
            self.asked = self.asked + 1
            local gen = dict:get("g|" .. worker.number)
            local head = gen and dict:get("t|" .. worker.number)
            if head then
                self.list[#self.list + 1] = {
                    number = worker.number, head = head, hidden = tonumber(str_match(head, "^%d+")),
                }
            end
        end
    end
    return setmetatable(self, mt)
end


-- The text of a worker about an entry; nil if it is missing, or older than generation `since`.
local function said_of(dict, number, id, since)
    local text = dict:get("t|" .. number .. "|" .. _M.part(id))
    local _, at = str_find(text or "", "\n" .. id .. " ", 1, true)
    if not at then
        return nil
    end
    local line = str_sub(text, at + 1, str_find(text, "\n", at, true) - 1)
    local gen, said = str_match(line, "^(%d+) (.*)$")
    return tonumber(gen) >= since and said or nil
end


--- Merges the statements of all workers in `list` about an entry.
-- @tparam string id
-- @tparam number|nil since the number of the entry's last change: older statements do not count
-- @treturn table for json.encode; `tag` identifies the words of all workers, and is nil until all
--   have reported
function _M:of(id, since)
    local said, hidden, set = 0, 0, {}
    for _, worker in ipairs(self.list) do
        local text = since and said_of(self.dict, worker.number, id, since)
        if text then
            said, hidden, set[text] = said + 1, max(hidden, worker.hidden), true
        end
    end
    local texts = word_text.sorted(set)
    -- the same words have the same tag in every worker, because all parts of the key are sorted
    local key = hidden .. " " .. concat(texts, "\n")
    if not known[key] then
        known = known_n < REMEMBERED and known or {}
        known_n = known_n % REMEMBERED + 1
        known[key] = { json = together(texts, hidden), tag = str_sub(md5(key), 1, 16) }
    end
    local tag = self.asked > 0 and said == self.asked and known[key].tag or nil
    return setmetatable({
        tag = tag,
        json = '{"said":' .. said .. ',"asked":' .. self.asked .. "," .. known[key].json
               .. (tag and ',"tag":"' .. tag .. '"' or "")
               .. (self.l4 and "" or ',"l4":false') .. "}",
    }, as_is)
end


--- Has no worker taken back or changed its word since `read`?
function _M:stand()
    for _, worker in ipairs(self.list) do
        if not self.dict:get("g|" .. worker.number)
           or self.dict:get("t|" .. worker.number) ~= worker.head then
            return false
        end
    end
    return true
end


return _M
