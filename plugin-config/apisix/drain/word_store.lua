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
local union     = require("apisix.drain.union")
local ngx       = ngx
local crc32     = ngx.crc32_short
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
    return union.of(said, self.asked, hidden, texts, self.l4)
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
