--- nginx and LuaJIT for the plugin, in a plain Lua 5.1: shared dictionaries, timers, coroutines,
-- and the room `host`. All gateways of a process share one VM. A gateway is a table; each of its
-- workers has an environment of its own, in which all modules are loaded anew. Node calls the
-- functions of `ops`, one at a time. Within a call time stands still, as in nginx between events.
--
-- Unlike LuaJIT's, the pcall of Lua 5.1 cannot be left by a yield: a pcall of a task that may sleep
-- is a coroutine.
local js = js
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local host_pcall, loadstring, setfenv = pcall, loadstring, setfenv
local null = newproxy()

-- seconds between two resumes of a request that polls shared memory in which nothing has changed
local POLL, POLL_MOST = 0.004, 0.1
local PAGE = 4096
-- timers that repeat are due at multiples of this, so that those of all workers run together
local GRID = 0.02

local gateways, sleeping, ops = {}, {}, {}
local now, armed = 0, math.huge
-- the task that runs: { worker, request, co, plain }
local current
-- thrown by ngx.exit in a phase of a request
local exit = {}


-- Tells Node when to call `ops.tick`.
local function sleep_till(task, due)
    task.due = due
    sleeping[task] = true
    if due < armed then
        armed = due
        js.arm((due - now) * 1000)
    end
end


local function log(worker, ...)
    local parts = { ... }
    for i = 1, select("#", ...) do
        parts[i] = tostring(parts[i])
    end
    js.log(worker.gateway.id, table.concat(parts))
end


-- Coroutines that wait for a function to run, because a new one costs more.
local pool, DONE = {}, {}


local function serve(func, ...)
    return serve(yield(DONE, func(...)))
end


local function take()
    return table.remove(pool) or create(serve)
end


local function settle(task, ok, what, seconds)
    if what == "sleep" then
        task.seen = task.request and seconds >= POLL and task.worker.gateway.version
        task.till = now + seconds + POLL_MOST
        sleep_till(task, now + seconds)
    elseif what ~= "wait" then
        if ok then
            pool[#pool + 1] = task.co
        else
            log(task.worker, "a task failed: ", what)
        end
        if task.over then
            task.over(ok)
        end
    end
end


local function step(task, ...)
    if task.worker.dead then
        return
    end
    local before = current
    current = task
    settle(task, resume(task.co, ...))
    current = before
end


local function start(task, func, ...)
    task.co = take()
    step(task, func, ...)
end


local function pass_on(co, ok, what, ...)
    if not ok then
        return false, what
    elseif what ~= DONE then
        return pass_on(co, resume(co, yield(what, ...)))
    end
    pool[#pool + 1] = co
    return true, ...
end


local function pcall(func, ...)
    if current.plain then
        return host_pcall(func, ...)
    end
    local co = take()
    return pass_on(co, resume(co, func, ...))
end


-- Runs a phase of a request, which never sleeps. @treturn number|nil the status it exited with
local function in_phase(worker, phase, request, func, ...)
    local before, phase_before = current, worker.phase
    current, worker.phase = { worker = worker, request = request, plain = true }, phase
    local ok, err = host_pcall(func, ...)
    current, worker.phase = before, phase_before
    if ok then
        return nil
    elseif err == exit then
        return exit.status
    end
    log(worker, "a phase failed: ", err)
    return 500
end


local json_escapes = setmetatable({ ['"'] = '\\"', ["\\"] = "\\\\" }, {
    __index = function(_, char) return string.format("\\u%04x", char:byte()) end,
})


-- The value of a Lua expression that Node has written.
local function value_of(code)
    local chunk, err = loadstring("local N = ... return " .. code)
    if not chunk then
        return nil, err
    end
    return chunk(null)
end


local function decode(text)
    local code = js.literal(text)
    if not code then
        return nil, "not JSON"
    end
    return value_of(code)
end


-- The number of bytes that nginx's slab allocator takes for an item: a power of two.
local function size_of(key, value)
    local bytes, class = 64 + #key + (type(value) == "string" and #value or 8), 64
    while class < bytes do
        class = class * 2
    end
    return class
end


--- A shared dictionary (lua_shared_dict). Expiry follows the wall clock of the gateway.
local function new_dict(gateway, capacity)
    local values, ends, sizes, used = {}, {}, {}, 0
    local dict = {}

    local function drop(key)
        if values[key] ~= nil then
            used = used - sizes[key]
            values[key], ends[key], sizes[key] = nil, nil, nil
        end
    end

    function dict:get(key)
        local till = ends[key]
        if till and till <= now + gateway.ahead then
            drop(key)
        end
        return values[key]
    end

    function dict:safe_set(key, value, expires)
        gateway.version = gateway.version + 1
        local size = size_of(key, value)
        if used - (sizes[key] or 0) + size > capacity then
            return false, "no memory"
        end
        used = used - (sizes[key] or 0) + size
        values[key], sizes[key] = value, size
        ends[key] = expires and expires > 0 and now + gateway.ahead + expires or nil
        return true
    end
    dict.set = dict.safe_set

    function dict:safe_add(key, value, expires)
        if dict:get(key) ~= nil then
            return false, "exists"
        end
        return dict:safe_set(key, value, expires)
    end
    dict.add = dict.safe_add

    function dict:replace(key, value, expires)
        if dict:get(key) == nil then
            return false, "not found"
        end
        return dict:safe_set(key, value, expires)
    end

    function dict:delete(key)
        gateway.version = gateway.version + 1
        drop(key)
    end

    function dict:incr(key, by, init)
        local value = dict:get(key) or init
        if not value then
            return nil, "not found"
        end
        dict:safe_set(key, value + by)
        return value + by
    end

    function dict:get_keys()
        local list = {}
        for key in pairs(values) do
            list[#list + 1] = key
        end
        return list
    end

    function dict:flush_expired()
        for _, key in ipairs(dict:get_keys()) do
            dict:get(key)
        end
    end

    function dict:capacity() return capacity end

    function dict:free_space() return math.floor((capacity - used) / PAGE) * PAGE end
    return dict
end


local function on_grid(due)
    return math.ceil(due / GRID) * GRID
end


-- Timers of one worker. A timer of `every` goes on while its function still runs.
local function timers(worker)
    local function fire(task, premature)
        if task.every and not premature then
            sleep_till(task, on_grid(now + task.every))
        end
        start({ worker = worker }, task.func, premature, unpack(task.args, 1, task.n))
    end

    local function set(delay, every, func, ...)
        local task = { worker = worker, every = every, func = func, fire = fire,
                       args = { ... }, n = select("#", ...) }
        sleep_till(task, every and on_grid(now + delay) or now + delay)
        return true
    end

    return {
        at = function(delay, func, ...) return set(delay, nil, func, ...) end,
        every = function(delay, func, ...) return set(delay, delay, func, ...) end,
    }
end


-- A TCP connection whose peer closes it after the answer (fetch.lua): all of the answer is read
-- before any of it is given on.
local function new_socket(worker)
    local socket, timeout, rest, failure, number = {}, 60000, nil, nil, nil

    local function wait(call, ...)
        local task = current
        call(function(...)
            step(task, ...)
        end, ...)
        return yield("wait")
    end

    function socket:settimeout(ms) timeout = ms end

    function socket:connect(host, port)
        local err
        number, err = wait(function(done)
            js.connect(worker.ref, ops.callback(done), host, port, timeout)
        end)
        return number, err
    end

    function socket:send(text)
        js.send(number, text)
        return #text
    end

    local function read_all()
        if not rest then
            rest, failure = wait(function(done)
                js.read(worker.ref, ops.callback(done), number, timeout)
            end)
        end
    end

    function socket:receive(what)
        read_all()
        local text, more
        if what == "*l" then
            text, more = rest:match("^(.-)\r?\n(.*)$")
        elseif #rest >= what then
            text, more = rest:sub(1, what), rest:sub(what + 1)
        end
        if not text then
            return nil, failure, rest
        end
        rest = more
        return text
    end

    function socket:close() js.close(number) end
    return socket
end


local callbacks, last_callback = {}, 0


--- Keeps a function until Node calls it.
function ops.callback(func)
    last_callback = last_callback + 1
    callbacks[last_callback] = func
    return last_callback
end


function ops.call_back(id, ...)
    local func = callbacks[id]
    callbacks[id] = nil
    func(...)
end


local function new_ngx(worker)
    local gateway = worker.gateway
    local ngx = {
        ERR = 4, WARN = 5, NOTICE = 6, INFO = 7, DEBUG = 8, null = null,
        shared = gateway.shared,
        config = { subsystem = worker.subsystem, prefix = function() return "" end },
        log = function(level, ...)
            if level <= 4 then
                log(worker, ...)
            end
        end,
        now = function() return now + gateway.ahead end,
        time = function() return math.floor(now + gateway.ahead) end,
        update_time = function() end,
        sleep = function(seconds) yield("sleep", seconds) end,
        get_phase = function() return worker.phase end,
        md5 = js.md5, crc32_short = js.crc32, crc32_long = js.crc32,
        -- no code looks into the digest
        hmac_sha1 = js.hmac, encode_base64 = function(digest) return digest end,
        worker = {
            pid = function() return worker.pid end,
            id = function() return worker.id end,
            count = function() return gateway.count end,
            exiting = function() return worker.exiting == true end,
        },
        timer = timers(worker),
        socket = { tcp = function() return new_socket(worker) end },
        print = function(text)
            local out = current.request.out
            out[#out + 1] = text
        end,
        exit = function(code)
            exit.status = code
            error(exit)
        end,
        req = {
            get_method = function() return current.request.method end,
            read_body = function() end,
            get_body_data = function() return current.request.body end,
            get_body_file = function() end,
            is_internal = function() return false end,
        },
    }
    return setmetatable(ngx, {
        -- ctx, var, header and status are those of the request
        __index = function(_, name) return current.request[name] end,
        __newindex = function(_, name, value) current.request[name] = value end,
    })
end


-- The room `host` of the plugin: host.lua, process.lua and wake.lua.
local function new_host(worker)
    local gateway = worker.gateway
    local host = {
        now = function() return now end,
        memory = function() return gateway.cells end,
        both = function(cells, at) return cells[at], cells[at + 1] end,
    }

    function host.canonical(ip)
        local known = gateway.ips[ip]
        if known == nil then
            known = js.canonical(ip) or false
            gateway.ips[ip] = known
        end
        return known or nil
    end

    function host.clear(cells, first, n)
        for at in pairs(cells) do
            if at >= first and at < first + n then
                cells[at] = 0
            end
        end
    end

    function host.move(cells, at)
        cells[at], cells[at + 1] = cells[at] - 1, cells[at + 1] + 1
    end

    local process = {
        started = function() return "1" end,
        alive = function(pid) return gateway.pids[pid] ~= nil end,
        serves = function(pid) return gateway.pids[pid] ~= nil end,
        family = function(known)
            local pids = {}
            for pid in pairs(gateway.pids) do
                if not known[pid] then
                    pids[#pids + 1] = pid
                end
            end
            return pids, gateway.second
        end,
    }

    local wake = {
        prepare = function() end,
        stop = function() end,
        listen = function(_, number, woken)
            gateway.listening[number] = { worker = worker, woken = woken }
        end,
        wake = function(_, list)
            local sent = false
            for _, one in ipairs(list) do
                local to = gateway.listening[one.number]
                if to and not to.worker.dead then
                    sent = true
                    to.worker.ngx.timer.at(0, to.woken)
                end
            end
            return sent
        end,
    }
    return host, process, wake
end


local bytecode = {}


local function chunk_of(name)
    local code = bytecode[name]
    if not code then
        local source = js.source(name)
        if not source then
            return nil, "no file " .. name
        end
        code = string.dump(assert(loadstring(source, "@" .. name)))
        bytecode[name] = code
    end
    return loadstring(code)
end


-- wasm has whole numbers of 32 bits only
local formats = setmetatable({}, {
    __index = function(self, text)
        self[text] = text:gsub("%%d", "%%.0f")
        return self[text]
    end,
})


local function new_env(worker)
    local env = {}
    for name, value in pairs(_G) do
        env[name] = value
    end
    local loaded, preload = {}, {}
    -- a step of one worker would collect the garbage of all
    env.collectgarbage = function() return 0 end
    env._G, env.js, env.vm, env.pcall = env, nil, nil, pcall
    env.package = { loaded = loaded, preload = preload, path = "",
                    searchpath = function(name) return name end }
    env.string = setmetatable({
        format = function(text, ...) return string.format(formats[text], ...) end,
    }, { __index = string })
    env.io = { open = function(path)
        return path == "/dev/urandom" and { read = function(_, n) return js.random(n) end,
                                            close = function() end } or nil, "no such file"
    end }
    env.os = { getenv = function() end }

    function env.loadfile(name)
        local chunk, err = chunk_of(name)
        return chunk and setfenv(chunk, env), err
    end

    function env.require(name)
        if loaded[name] == nil then
            local value = (preload[name] or assert(env.loadfile(name)))(name)
            if value ~= nil then
                loaded[name] = value
            elseif loaded[name] == nil then
                loaded[name] = true
            end
        end
        return loaded[name]
    end

    worker.ngx = new_ngx(worker)
    env.ngx = worker.ngx
    local host, process, wake = new_host(worker)
    loaded["apisix.drain.host"], loaded["apisix.drain.process"] = host, process
    loaded["apisix.drain.wake"] = wake
    loaded["cjson.safe"] = {
        decode = decode, null = null,
        encode = function(text) return '"' .. text:gsub('[%c"\\]', json_escapes) .. '"' end,
    }
    loaded["ngx.balancer"] = {
        set_current_peer = function(address, port)
            local request = current.request
            request.host, request.port = address, port
            return true
        end,
        set_more_tries = function(n) current.request.more = n end,
        get_last_failure = function() return "failed", 502 end,
        recreate_request = function() end,
    }
    return env
end


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
                            nodes = value_of(js.discovered_nodes(gateway.id, type, service)) }
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
    local env = new_env(worker)
    worker.env = env
    env.FAKE_ATTR = gateway.attr
    env.package.loaded["apisix.discovery.init"] = { discovery = gateway.discovery }
    worker.core = env.require("apisix.core")
    worker.core.resolver = { parse_domain_all = function(name)
        local code = js.resolve(gateway.id, name)
        return code and value_of(code) or nil
    end }
    worker.objects = env.require("apisix.objects")
    return worker
end


local function run_init(worker)
    local env = worker.env
    in_phase(worker, "init", {}, function()
        if worker.gateway.plugin then
            env.require("apisix.drain.hook")
        end
        worker.apisix = env.require("apisix")
    end)
    worker.phase = "timer"
    in_phase(worker, "init_worker", {}, function()
        worker.apisix[worker.subsystem .. "_init_worker"]()
    end)
end


--- A gateway starts: an nginx without workers.
-- @tparam string settings { plugin, count, dictionary, counts, attr }, as a Lua expression
function ops.gateway(id, settings)
    local gateway = value_of(settings)
    gateway.id, gateway.ahead, gateway.version = id, 0, 0
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
        in_phase(gateway.view, "init", {}, function()
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


--- A worker starts. @tparam string kinds { [kind] = { value, … } }, as a Lua expression
function ops.worker(gateway_id, ref, id, pid, subsystem, config, revision)
    local gateway = gateways[gateway_id]
    local worker = new_worker(gateway, ref, id, pid, subsystem)
    gateway.workers[ref], gateway.pids[pid] = worker, true
    for _, item in ipairs(value_of(config)) do
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
    for task in pairs(sleeping) do
        if task.worker == worker then
            sleeping[task] = nil
        end
    end
    gateway.version = gateway.version + 1
end


--- After a reload: the worker only finishes its requests.
function ops.retire(gateway_id, ref)
    local worker = gateways[gateway_id].workers[ref]
    worker.exiting = true
    local list = {}
    for task in pairs(sleeping) do
        if task.worker == worker and task.every then
            list[#list + 1] = task
        end
    end
    for _, task in ipairs(list) do
        sleeping[task] = nil
        task.fire(task, true)
    end
end


function ops.freeze(gateway_id, ref, frozen)
    gateways[gateway_id].workers[ref].frozen = frozen
    if not frozen then
        armed = now
        js.arm(0)
    end
end


--- One event of etcd, as this worker applies it. No value: the object is gone.
function ops.config(gateway_id, ref, kind, id, code, revision)
    local gateway = gateways[gateway_id]
    local worker = gateway.workers[ref]
    in_phase(worker, "timer", {}, function()
        if kind ~= "" then
            worker.objects.event(worker.core, kind, id, code and value_of(code), revision)
        end
        worker.objects.revision(worker.core, revision)
    end)
    gateway.version = gateway.version + 1
end


--- A request of the Barrier API. Its answer goes to js.answer.
-- @tparam string request as a Lua expression
function ops.ask(gateway_id, ref, id, request)
    local worker = gateways[gateway_id].workers[ref]
    local asked = value_of(request)
    asked.out, asked.header, asked.status = {}, {}, 200
    start({ worker = worker, request = asked, over = function(ok)
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
    return in_phase(worker, phase, request, func, worker, request) or 0
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
-- @treturn string words: 0 or a status, host, port, how many more tries there may be (at the first
--   one), whether the node is a bypass, whether the request has moved
function ops.balance(gateway_id, ref, id)
    local gateway = gateways[gateway_id]
    local worker = gateway and gateway.workers[ref]
    local request = worker and worker.requests[id]
    if not request then
        return "0"
    end
    local counts = gateway.shared["apisix-drain-counts"]
    local function read(name) return counts and counts:get(name) or 0 end
    local bypasses, moved = read("bypasses"), read("moved")
    local code = phase_of(gateway_id, ref, id, "balancer", function()
        worker.apisix.http_balancer_phase()
    end)
    return table.concat({ code, request.host or "-", request.port or "-", request.more or "-",
                          read("bypasses") > bypasses and 1 or 0,
                          read("moved") > moved and 1 or 0 }, " ")
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


--- What a test or the demo sees and changes (view.lua). The arguments and the result are JSON.
function ops.see(gateway_id, name, args)
    local gateway = gateways[gateway_id]
    local result
    local code = in_phase(gateway.view, "timer", {}, function()
        result = gateway.see[name](unpack(decode(args)))
    end)
    gateway.version = gateway.version + 1
    return code and "" or gateway.view.env.require("apisix.drain.json").encode(result or false)
end


--- Runs what is due, and arms Node's timer for what comes next.
function ops.tick()
    armed = math.huge
    local due = {}
    for task in pairs(sleeping) do
        if not task.worker.frozen and task.due <= now then
            if task.seen == task.worker.gateway.version and now < task.till then
                task.due = now + POLL
            else
                due[#due + 1] = task
            end
        end
    end
    for _, task in ipairs(due) do
        if sleeping[task] then
            sleeping[task] = nil
            if task.fire then
                task.fire(task, false)
            else
                step(task)
            end
        end
    end
    local first = math.huge
    for task in pairs(sleeping) do
        if not task.worker.frozen and task.due < first then
            first = task.due
        end
    end
    if first < armed then
        armed = first
        js.arm((first - now) * 1000)
    end
end


--- @tparam number at seconds, by a clock that does not step
function vm(name, at, ...)
    now = at
    return ops[name](...)
end
