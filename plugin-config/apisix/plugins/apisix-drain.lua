--- The barrier as an ordinary APISIX plugin. It needs no route and no global rule: naming it in
-- `plugins:` loads it into every worker. Its code is in apisix/drain/.
local core    = require("apisix.core")
local runtime = require("apisix.drain.runtime")


local schema = {
    type = "object",
    properties = {},
    additionalProperties = false,
}

local _M = {
    version  = 0.1,
    priority = 99,
    name     = "apisix-drain",
    schema   = schema,
    scope    = "global",
}


--- It has no settings per route; those of the gateway are in `plugin_attr.apisix-drain`.
function _M.check_schema(conf)
    return core.schema.check(schema, conf)
end


function _M.init()
    runtime.start()
end


function _M.destroy()
    runtime.stop()
end


return _M
