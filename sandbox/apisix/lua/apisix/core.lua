-- A stand-in for apisix.core: only the parts that the plugin and the other stand-ins use.
local ngx = ngx


-- nginx turns any status from the balancer phase into 500, unless it has OpenResty's patch
-- (balancer_status_code), as APISIX's nginx has. The header filter of init.lua restores the status.
local function exit(code, body)
    if ngx.get_phase() == "balancer" then
        ngx.ctx.api_ctx.balancer_status = code
    end
    if body then
        ngx.status = code
        ngx.print(body)
    end
    return ngx.exit(code)
end


local applied = {}
package.loaded["apisix.core.version"] = { VERSION = "3.18.0-stand-in" }


return {
    response = { exit = exit },
    schema = {
        check = function(schema, conf)
            local bad = schema.additionalProperties == false and next(conf) ~= nil
            return not bad, bad and "additional properties forbidden" or nil
        end,
    },
    config = {
        -- the nginx.conf of a test sets this
        local_conf = function()
            return { apisix = FAKE_APISIX, plugin_attr = { ["apisix-drain"] = FAKE_ATTR } }
        end,
        fetch_created_obj = function(key) return applied[key] end,
        applied = applied,
    },
}
