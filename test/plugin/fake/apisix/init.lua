-- A stand-in for apisix/init.lua: the phases in APISIX's order. The configuration is one JSON text
-- in a shared dictionary; every worker takes it over by itself, as with a watch of its own.
local core    = require("apisix.core")
local pickers = require("apisix.pickers")
local cjson   = require("cjson.safe")
local ngx     = ngx

local dict = ngx.shared["stand-in"]
local load_balancer
local upstreams, revision = {}, 0
local _M = {}

-- a request's context is taken from a pool and cleared at its end, as APISIX does
local clear, new = require("table.clear"), require("table.new")
local pool = {}


local function take()
    local ctx = table.remove(pool)
    return ctx or new(0, 32)
end


local function apply()
    local now = dict:get("revision") or 0
    if now ~= revision then
        upstreams = cjson.decode(dict:get("config")) or {}
        revision = now
        for id, conf in pairs(upstreams) do
            conf.resource_key, conf.resource_id = "/apisix/upstreams/" .. id, id
            conf.resource_version = now
        end
        core.config.applied["/upstreams"] = {
            prev_index = now,
            get = function(_, id)
                return upstreams[id] and { value = upstreams[id], modifiedIndex = now }
            end,
        }
    end
end


function _M.http_init_worker()
    load_balancer = require("apisix.balancer")
    load_balancer.init_worker()
    apply()
    ngx.timer.every(0.002, function(premature)
        if not premature then
            apply()
        end
    end)
    for _, name in ipairs(FAKE_PLUGINS) do
        _M.load(name)
    end
end


-- Loads a plugin, also once more: APISIX calls destroy of the old one first.
function _M.load(name)
    local path = "apisix.plugins." .. name
    local old = package.loaded[path]
    if old then
        old.destroy()
    end
    package.loaded[path] = nil
    require(path).init()
end


function _M.http_access_phase()
    local id = ngx.var.uri:match("^/(%w+)")
    local conf = upstreams[id]
    local ctx = take()
    ctx.var, ctx.upstream_conf, ctx.upstream_key = ngx.var, conf, "roundrobin#" .. tostring(id)
    ctx.upstream_version, ctx.pass_host = tostring(revision), conf and conf.pass_host
    ngx.ctx.api_ctx = ctx

    if not conf or #conf.nodes == 0 then
        return core.response.exit(503)
    end
    if ngx.var.http_upgrade then
        ngx.var.upstream_upgrade = ngx.var.http_upgrade
        ngx.var.upstream_connection = "upgrade"
    end

    local server, err = load_balancer.pick_server(nil, ctx)
    if not server then
        ngx.log(ngx.ERR, "failed to pick server: ", err)
        return core.response.exit(502)
    end
    ctx.picked_server = server
    if ctx.pass_host == "node" then
        ngx.var.upstream_host = server.upstream_host
    end
    if ngx.var.arg_forbid then
        return core.response.exit(403)
    end
end


function _M.http_balancer_phase()
    load_balancer.run(nil, ngx.ctx.api_ctx)
end


function _M.http_header_filter_phase()
end


function _M.http_log_phase()
    local ctx = ngx.ctx.api_ctx
    if ctx and ctx.server_picker then
        ctx.server_picker.after_balance(ctx, false)
    end
    if ctx then
        clear(ctx)
        pool[#pool + 1] = ctx
    end
end


-- For tests: puts a new configuration, or tells about this worker.
function _M.test_door()
    local path = ngx.var.uri
    if path == "/config" then
        ngx.req.read_body()
        dict:set("config", ngx.req.get_body_data())
        ngx.say((dict:incr("revision", 1, 0)))
    elseif path == "/plugins/reload" then
        _M.load("apisix-drain")
        ngx.say(ngx.worker.pid())
    elseif path == "/break" then
        -- a bug in ours, from the next request on, in every worker
        dict:set("broken", ngx.var.arg_what)
        ngx.say("ok")
    else
        ngx.say(cjson.encode({ pid = ngx.worker.pid(), connections = pickers.connections() }))
    end
end


return _M
