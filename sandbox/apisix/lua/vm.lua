--- nginx and LuaJIT for the plugin, in a plain Lua 5.1. All gateways of a process share one VM. A
-- gateway is a table; each of its workers has an environment of its own (nginx.lua). Node calls the
-- functions of `ops`, one at a time. Within a call time stands still, as in nginx between events.
local js = js

local function part(name, ...)
    return assert(loadstring(js.source(name), "@" .. name))(...)
end

local tasks, new_dict = part("tasks"), part("dict")
local nginx = part("nginx", tasks)

local gateways, ops = {}, { tick = tasks.tick, call_back = tasks.call_back }


-- The nodes of a service, as a registry lists them: the same table until they change.
local function discovery_of(gateway)
    local known = {}
    return setmetatable({}, { __index = function(_, type)
        if not js.has_discovery(gateway.id, type) then
            return nil
        end
        return {
            check_discovery_ready = function() return true end,
            nodes = function(service)
                local name = type .. " " .. service
                local version = js.discovered(gateway.id, type, service)
                local one = known[name]
                if not one or one.version ~= version then
                    one = { version = version,
                            nodes = js.discovered_nodes(gateway.id, type, service) }
                    known[name] = one
                end
                if type == "kubernetes" and #one.nodes == 0 then
                    return nil
                end
                return one.nodes
            end,
        }
    end })
end


local function new_worker(gateway, ref, id, pid, subsystem)
    local worker = { gateway = gateway, ref = ref, id = id, pid = pid, subsystem = subsystem,
                     requests = {}, phase = "init" }
    local env = nginx.env(worker)
    worker.env = env
    env.FAKE_ATTR, env.FAKE_APISIX = gateway.attr, gateway.apisix
    env.package.loaded["apisix.discovery.init"] = { discovery = gateway.discovery }
    worker.core = env.require("apisix.core")
    worker.core.resolver = { parse_domain_all = function(name)
        return js.resolve(gateway.id, name)
    end }
    worker.objects = env.require("apisix.objects")
    return worker
end


local function run_init(worker)
    local env = worker.env
    tasks.in_phase(worker, "init", {}, function()
        if worker.gateway.plugin then
            env.require("apisix.drain.hook")
        end
        worker.apisix = env.require("apisix")
    end)
    worker.phase = "timer"
    tasks.in_phase(worker, "init_worker", {}, function()
        worker.apisix[worker.subsystem .. "_init_worker"]()
    end)
end


--- A gateway starts: an nginx without workers.
-- @tparam table gateway { plugin, count, dictionary, attr, apisix }
function ops.gateway(id, gateway)
    gateway.id, gateway.ahead, gateway.version = id, 0, 0
    gateway.clock = function() return tasks.now end
    gateway.pids, gateway.listening, gateway.ips, gateway.workers = {}, {}, {}, {}
    gateway.cells = setmetatable({}, { __index = function() return 0 end })
    gateway.shared = gateway.plugin and {
        ["apisix-drain"] = new_dict(gateway, gateway.dictionary),
        ["apisix-drain-counts"] = new_dict(gateway, 10485760),
    } or {}
    gateway.discovery = discovery_of(gateway)
    gateways[id] = gateway
    if gateway.plugin then
        -- reads and changes what the workers share, for tests
        gateway.view = new_worker(gateway, 0, -1, 0, "http")
        gateway.view.phase = "timer"
        tasks.in_phase(gateway.view, "init", {}, function()
            gateway.view.env.require("apisix.drain.cells").prepare(
                gateway.shared["apisix-drain-counts"])
        end)
        gateway.see = gateway.view.env.require("view").of(gateway)
    end
end


function ops.gone(id)
    for ref in pairs(gateways[id].workers) do
        ops.kill(id, ref)
    end
    gateways[id] = nil
end


--- A worker starts. @tparam table config a list of { kind, id, value, revision }
function ops.worker(gateway_id, ref, id, pid, subsystem, config, revision)
    local gateway = gateways[gateway_id]
    local worker = new_worker(gateway, ref, id, pid, subsystem)
    gateway.workers[ref], gateway.pids[pid] = worker, true
    for _, item in ipairs(config) do
        worker.objects.event(worker.core, item.kind, item.id, item.value, item.revision)
    end
    worker.objects.revision(worker.core, revision)
    run_init(worker)
end


function ops.kill(gateway_id, ref)
    local gateway = gateways[gateway_id]
    local worker = gateway.workers[ref]
    worker.dead = true
    gateway.workers[ref], gateway.pids[worker.pid] = nil, nil
    for _, task in ipairs(tasks.asleep(worker)) do
        tasks.forget(task)
    end
    gateway.version = gateway.version + 1
end


--- After a reload: the worker only finishes its requests.
function ops.retire(gateway_id, ref)
    local worker = gateways[gateway_id].workers[ref]
    worker.exiting = true
    for _, task in ipairs(tasks.asleep(worker)) do
        if task.every then
            tasks.forget(task)
            task.fire(task, true)
        end
    end
end


function ops.freeze(gateway_id, ref, frozen)
    gateways[gateway_id].workers[ref].frozen = frozen
    if not frozen then
        tasks.hurry()
    end
end


--- One event of etcd, as this worker applies it. No value: the object is gone.
function ops.config(gateway_id, ref, kind, id, value, revision)
    local gateway = gateways[gateway_id]
    local worker = gateway.workers[ref]
    tasks.in_phase(worker, "timer", {}, function()
        if kind ~= "" then
            worker.objects.event(worker.core, kind, id, value, revision)
        end
        worker.objects.revision(worker.core, revision)
    end)
    gateway.version = gateway.version + 1
end


--- A request of the Barrier API. Its answer goes to js.answer.
function ops.ask(gateway_id, ref, id, asked)
    local worker = gateways[gateway_id].workers[ref]
    asked.out, asked.header, asked.status = {}, {}, 200
    tasks.start({ worker = worker, request = asked, over = function(ok)
        js.answer(id, ok and asked.status or 500, asked.header["Allow"] or "",
                  asked.header["WWW-Authenticate"] or "", table.concat(asked.out))
    end }, function()
        worker.env.require("apisix.drain.api").serve()
    end)
end


-- @treturn number 0 or the status with which the request ends
local function phase_of(gateway_id, ref, id, phase, func)
    local gateway = gateways[gateway_id]
    local worker = gateway and gateway.workers[ref]
    local request = worker and worker.requests[id]
    if not request then
        return 0
    end
    if gateway.see and request.host and gateway.see.look(request.host, request.port) ~= "free" then
        -- what is in flight to an address with an entry may change
        gateway.version = gateway.version + 1
    end
    return tasks.in_phase(worker, phase, request, func, worker, request) or 0
end


--- The access phase: APISIX picks a node for the request.
-- The upstream is in this object, or in a rule of its traffic-split.
function ops.access(gateway_id, ref, id, uri, host, client, kind, object, rule, choice)
    local worker = gateways[gateway_id].workers[ref]
    worker.requests[id] = { ctx = {}, header = {}, status = 0, var = {
        uri = uri, request_uri = uri, host = host, remote_addr = client,
    } }
    return phase_of(gateway_id, ref, id, "access", function(_, request)
        worker.apisix.http_access_phase(request.var, kind, object, rule, choice)
    end)
end


--- The balancer phase.
-- @treturn string words: 0 or a status, host, port, how many more tries there may be (at first)
function ops.balance(gateway_id, ref, id)
    local gateway = gateways[gateway_id]
    local worker = gateway and gateway.workers[ref]
    local request = worker and worker.requests[id]
    if not request then
        return "0"
    end
    local code = phase_of(gateway_id, ref, id, "balancer", function()
        worker.apisix.http_balancer_phase()
    end)
    return table.concat({ code, request.host or "-", request.port or "-", request.more or "-" },
                        " ")
end


function ops.header(gateway_id, ref, id, code, content_type)
    phase_of(gateway_id, ref, id, "header_filter", function(worker, request)
        request.status, request.header.content_type = code, content_type
        worker.apisix.http_header_filter_phase()
    end)
end


function ops.log(gateway_id, ref, id)
    phase_of(gateway_id, ref, id, "log", function(worker)
        worker.apisix.http_log_phase()
        worker.requests[id] = nil
    end)
end


--- What a test or the demo sees and changes (view.lua). The result is JSON.
function ops.see(gateway_id, name, args)
    local gateway = gateways[gateway_id]
    local result
    local code = tasks.in_phase(gateway.view, "timer", {}, function()
        result = gateway.see[name](unpack(args))
    end)
    -- all others may change something
    gateway.version = gateway.version + (name == "sealed" and 0 or 1)
    return code and "" or gateway.view.env.require("apisix.drain.json").encode(result or false)
end


--- @tparam number at seconds, by a clock that does not step
function vm(name, at, ...)
    tasks.now = at
    return ops[name](...)
end
