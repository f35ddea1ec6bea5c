--- The names of the agents' releases that put entries. An entry keeps only a number, in the flags
-- of its key in the dictionary, so a name costs no memory for each entry.
--
--   w|name  the number of this name
--   W|n     the name of this number
--   writers the last number that was given
local _M = {}

-- more names than the releases of the agent for one gateway; it bounds what callers can store
local MOST = 64


--- @tparam table dict of the entries
-- @tparam string name of the writer (request.lua)
-- @treturn number 0 if there is no room for another name: entries of that writer have none
function _M.number(dict, name)
    local number = dict:get("w|" .. name)
    if number then
        return number
    end
    number = dict:incr("writers", 1, 0)
    if not number or number > MOST then
        return 0
    end
    -- the name is stored first, so that every number that a worker finds has a name
    if not dict:safe_set("W|" .. number, name) or not dict:safe_set("w|" .. name, number) then
        return 0
    end
    return number
end


--- @treturn string|nil the name of this number
function _M.name(dict, number)
    return number and dict:get("W|" .. number)
end


return _M
