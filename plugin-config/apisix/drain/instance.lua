--- Which deny-list this is. Made when its dictionary is: it survives a reload and no restart; a
-- reload that gives the dictionary another size makes a new one, beside that of the old workers.
local cells  = require("apisix.drain.cells")
local ngx    = ngx
local io     = io
local format = string.format

-- a release that keeps its entries otherwise has none of those from before
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


--- @tparam table dict the deny-list's
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
