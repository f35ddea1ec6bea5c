--- Writes JSON. cjson writes an empty table as an object, and only OpenResty's edition of cjson has
-- a switch for that. The barrier's answers have many lists that may be empty.
local cjson        = require("cjson.safe")
local format       = string.format
local floor        = math.floor
local concat       = table.concat

local list_mt = {}
local _M = { decode = cjson.decode, null = cjson.null }


--- Marks a table as a list, even if it is empty.
function _M.list(items)
    return setmetatable(items or {}, list_mt)
end


local function number(value)
    if value == floor(value) and value < 1e15 and value > -1e15 then
        return format("%d", value)
    end
    return format("%.3f", value)
end


--- The JSON of a value made of strings, numbers (to the millisecond), booleans, objects and lists.
-- If the metatable of a table has a function `text`, the result of that function is used.
function _M.encode(value)
    local kind = type(value)
    if kind == "string" then
        return cjson.encode(value)
    elseif kind == "number" then
        return number(value)
    elseif kind ~= "table" then
        return tostring(value)
    end

    local mt, parts = getmetatable(value), {}
    if mt and mt.text then
        return mt.text(value)
    end
    if mt == list_mt then
        for i = 1, #value do
            parts[i] = _M.encode(value[i])
        end
        return "[" .. concat(parts, ",") .. "]"
    end
    for key, item in pairs(value) do
        parts[#parts + 1] = cjson.encode(key) .. ":" .. _M.encode(item)
    end
    return "{" .. concat(parts, ",") .. "}"
end


return _M
