--- What a worker's code sees of nginx and LuaJIT: `ngx`, its modules, and the room `host`.
local tasks = ...
local js, loadstring, setfenv, yield = js, loadstring, setfenv, coroutine.yield

local _M = {}


local json_escapes = setmetatable({ ['"'] = '\\"', ["\\"] = "\\\\" }, {
    __index = function(_, char) return string.format("\\u%04x", char:byte()) end,
})


local function decode(text)
    local value = js.parse(text)
    if value == nil then
        return nil, "not JSON"
    end
    return value
end


-- A TCP connection whose peer closes it after the answer (fetch.lua): all of the answer is read
-- before any of it is given on.
local function new_socket(worker)
    local socket, timeout, rest, failure, number = {}, 60000, nil, nil, nil

    local function wait(call, ...)
        local task = tasks.current
        call(function(...)
            tasks.step(task, ...)
        end, ...)
        return yield("wait")
    end

    function socket:settimeout(ms) timeout = ms end

    function socket:connect(host, port)
        local err
        number, err = wait(function(done)
            js.connect(worker.ref, tasks.callback(done), host, port, timeout)
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
                js.read(worker.ref, tasks.callback(done), number, timeout)
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


local function new_ngx(worker)
    local gateway = worker.gateway
    local ngx = {
        ERR = 4, WARN = 5, NOTICE = 6, INFO = 7, DEBUG = 8, null = js.null,
        shared = gateway.shared,
        config = { subsystem = worker.subsystem, prefix = function() return "" end },
        log = function(level, ...)
            if level <= 4 then
                tasks.log(worker, ...)
            end
        end,
        now = function() return tasks.now + gateway.ahead end,
        time = function() return math.floor(tasks.now + gateway.ahead) end,
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
        timer = tasks.timers(worker),
        socket = { tcp = function() return new_socket(worker) end },
        print = function(text)
            local out = tasks.current.request.out
            out[#out + 1] = text
        end,
        exit = function(code)
            tasks.exit.status = code
            error(tasks.exit)
        end,
        req = {
            get_method = function() return tasks.current.request.method end,
            read_body = function() end,
            get_body_data = function() return tasks.current.request.body end,
            get_body_file = function() end,
            is_internal = function() return false end,
        },
    }
    return setmetatable(ngx, {
        -- ctx, var, header and status are those of the request
        __index = function(_, name) return tasks.current.request[name] end,
        __newindex = function(_, name, value) tasks.current.request[name] = value end,
    })
end


-- The room `host` of the plugin: host.lua and wake.lua.
local function new_host(worker)
    local gateway = worker.gateway
    local host = {
        now = function() return tasks.now end,
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

    function host.started() return "1" end

    function host.alive(pid) return gateway.pids[pid] ~= nil end

    host.serves = host.alive

    function host.family(known)
        local pids = {}
        for pid in pairs(gateway.pids) do
            if not known[pid] then
                pids[#pids + 1] = pid
            end
        end
        return pids, gateway.second
    end

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
    return host, wake
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


--- The environment of a worker, in which all modules are loaded anew.
function _M.env(worker)
    local env = {}
    for name, value in pairs(_G) do
        env[name] = value
    end
    local loaded, preload = {}, {}
    -- a step of one worker would collect the garbage of all
    env.collectgarbage = function() return 0 end
    env._G, env.js, env.vm, env.pcall = env, nil, nil, tasks.pcall
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
    local host, wake = new_host(worker)
    loaded["apisix.drain.host"], loaded["apisix.drain.wake"] = host, wake
    loaded["cjson.safe"] = {
        decode = decode, null = js.null,
        encode = function(text) return '"' .. text:gsub('[%c"\\]', json_escapes) .. '"' end,
    }
    loaded["ngx.balancer"] = {
        set_current_peer = function(address, port)
            local request = tasks.current.request
            request.host, request.port = address, port
            return true
        end,
        set_more_tries = function(n) tasks.current.request.more = n end,
        get_last_failure = function() return "failed", 502 end,
        recreate_request = function() end,
    }
    return env
end


return _M
