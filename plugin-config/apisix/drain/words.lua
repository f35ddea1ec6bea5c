--- Workers' words, as they are kept in the dictionary of counts, by the number of the process: no
-- other process ever inherits one.
--
--   g|number       the generation of the deny-list that it knows. While it is there, all that this
--                  worker says is so in the configuration that it has; absent: it says nothing
--   t|number       "hidden mark": the places into which it cannot look, and how often it took its
--   word
--                  back before this one
--   t|number|part  lines of some entries, "id", the generation in which it was said, and the text
--                  (about.lua). By parts, so that one entry that changes is not all of them
local union     = require("apisix.drain.union")
local ngx       = ngx
local crc32     = ngx.crc32_short
local setmetatable = setmetatable
local ipairs    = ipairs
local pairs     = pairs
local next      = next
local tonumber  = tonumber
local max       = math.max
local concat    = table.concat
local str_find  = string.find
local str_match = string.match
local str_sub   = string.sub

local PARTS = 64

local _M = {}
local mt = { __index = _M }


--- The part that an entry is in.
function _M.part(id)
    return crc32(id) % PARTS
end


--- What is said of an entry, as a line.
function _M.line(id, gen, text)
    return "\n" .. id .. " " .. gen .. " " .. text
end


--- Writes a part. It is heard where the worker has told, or will.
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


--- Says that all of it is so. @treturn boolean false: there is no room
function _M.tell(dict, number, gen, hidden, mark)
    return dict:safe_set("t|" .. number, hidden .. " " .. mark) == true
           and dict:safe_set("g|" .. number, gen) == true
end


--- Takes a word back.
function _M.void(dict, number)
    dict:delete("g|" .. number)
end


--- Removes all that a process has said.
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


--- The workers that serve, and those of them that say something now.
function _M.read(dict, living)
    local self = { dict = dict, list = {}, asked = 0 }
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


-- The text about an entry, said in a generation or later; or nil.
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


--- What they say of an entry.
-- @tparam string id
-- @tparam number|nil since the change since which it is what it is: what was said before does not
-- count
-- @treturn table see union.of
function _M:of(id, since)
    local said, hidden, texts = 0, 0, {}
    for _, worker in ipairs(self.list) do
        local text = since and said_of(self.dict, worker.number, id, since)
        if text then
            said, hidden = said + 1, max(hidden, worker.hidden)
            texts[said] = text
        end
    end
    return union.of(said, self.asked, hidden, texts)
end


--- Has none of them taken its word back since it was read?
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
