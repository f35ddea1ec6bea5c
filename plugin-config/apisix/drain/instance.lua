--- The identity of a deny-list. The dictionary of the list stores it, so it survives a reload, but
-- no restart. After a reload that resizes the dictionary, the new workers have a new dictionary and
-- a new identity, and the old workers keep the old ones.
local cells  = require("apisix.drain.cells")
local ngx    = ngx
local io     = io
local format = string.format

-- a release that stores its entries in another way cannot read the old ones
local KEY = "instance|" .. cells.LAYOUT

local _M = {}


local function random_id()
    local file = io.open("/dev/urandom", "rb")
    local bytes = file and file:read(16)
    if file then
        file:close()
    end
    if not bytes then
        return format("%x%x", ngx.worker.pid(), ngx.now() * 1000)
    end
    return (bytes:gsub(".", function(c) return format("%02x", c:byte()) end))
end


--- Returns the identity, and makes it if the dictionary has none.
-- @tparam table dict the dictionary of the deny-list
function _M.of(dict)
    local id = dict:get(KEY)
    if not id then
        dict:safe_add(KEY, random_id())
        id = dict:get(KEY)
    end
    return id
end


--- Identifies the workers that share this deny-list and this way of counting.
function _M.shared(dict)
    return _M.of(dict) .. " " .. cells.LAYOUT
end


return _M
