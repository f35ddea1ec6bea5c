-- Stand-ins for APISIX's balancing algorithms, with the properties that matter to code that gives
-- them fewer nodes. One picker serves a whole request, and the request remembers the servers that
-- it tried. least_conn keeps one state for all pickers of an upstream. A new picker prunes it.
local ngx = ngx
local pairs, ipairs = pairs, ipairs

local _M = {}


-- after_balance for every algorithm. A second call for the same pick does nothing.
local function release(ctx, before_retry)
    local server = ctx.balancer_server
    ctx.balancer_server = nil
    if not before_retry then
        ctx.balancer_tried_servers = nil
        return
    end
    if server then
        local tried = ctx.balancer_tried_servers or {}
        ctx.balancer_tried_servers = tried
        tried[server] = true
        ctx.balancer_tried_servers_count = (ctx.balancer_tried_servers_count or 0) + 1
    end
end


local function exhausted(ctx, n)
    return ctx.balancer_tried_servers and ctx.balancer_tried_servers_count == n
end


-- Turns as in lua-resty-balancer: they go down from the highest weight in steps of the greatest
-- common divisor, and each turn visits the servers whose weight reaches it.
local function ring_of(servers, weights)
    local ring, highest, step = {}, 1, 0
    for _, server in ipairs(servers) do
        local a, b = weights[server] or 1, step
        highest = math.max(highest, a)
        while b > 0 do
            a, b = b, a % b
        end
        step = a
    end
    for level = highest, 1, -math.max(step, 1) do
        for _, server in ipairs(servers) do
            if (weights[server] or 1) >= level or highest == 1 then
                ring[#ring + 1] = server
            end
        end
    end
    return ring
end


function _M.roundrobin(servers, _, _, weights)
    local ring = ring_of(servers, weights)
    local at = math.random(#ring)
    return {
        get = function(ctx)
            if exhausted(ctx, #servers) then
                return nil, "all tried"
            end
            for _ = 1, #ring do
                at = at % #ring + 1
                local server = ring[at]
                if not (ctx.balancer_tried_servers and ctx.balancer_tried_servers[server]) then
                    return server
                end
            end
            return nil, "all tried"
        end,
        after_balance = release,
    }
end


local states = {}


function _M.least_conn(servers, key)
    local state = states[key]
    if not state then
        state = { conns = {}, members = {} }
        states[key] = state
    end
    local mine = {}
    for _, server in ipairs(servers) do
        mine[server], state.members[server] = true, true
    end
    for server in pairs(state.members) do
        if not mine[server] then
            state.members[server] = nil
        end
    end

    return {
        get = function(ctx)
            local best
            for server in pairs(state.members) do
                local tried = ctx.balancer_tried_servers and ctx.balancer_tried_servers[server]
                if mine[server] and not tried and
                   (not best or (state.conns[server] or 0) < (state.conns[best] or 0)) then
                    best = server
                end
            end
            if not best then
                return nil, "all tried"
            end
            state.conns[best] = (state.conns[best] or 0) + 1
            return best
        end,
        after_balance = function(ctx, before_retry)
            local server = ctx.balancer_server
            if server then
                state.conns[server] = (state.conns[server] or 0) - 1
            end
            release(ctx, before_retry)
        end,
    }
end


-- Returns the text that chash hashes: a variable, header or cookie, else the client's address.
local function key_of(ctx, conf)
    local hash_on = conf.hash_on or "vars"
    local name = hash_on == "vars" and conf.key
                 or (hash_on == "header" and "http_" or "cookie_") .. conf.key
    return ctx.var[name] or ctx.var.remote_addr
end


-- Picks by a consistent hash of the request's key. A retry takes the next server of the ring that
-- the request has not tried.
function _M.chash(servers, _, conf)
    local ring = {}
    for _, server in ipairs(servers) do
        for i = 1, 40 do
            ring[#ring + 1] = { at = ngx.crc32_long(server .. "#" .. i), server = server }
        end
    end
    table.sort(ring, function(a, b) return a.at < b.at end)

    local function find(hash)
        for i, point in ipairs(ring) do
            if point.at >= hash then
                return i
            end
        end
        return 1
    end

    return {
        get = function(ctx)
            if exhausted(ctx, #servers) then
                return nil, "all tried"
            end
            local tried = ctx.balancer_tried_servers
            if not tried then
                ctx.chash_last_server_index = find(ngx.crc32_long(key_of(ctx, conf)))
            end
            for _ = 1, #ring do
                local server = ring[ctx.chash_last_server_index].server
                if not (tried and tried[server]) then
                    return server
                end
                ctx.chash_last_server_index = ctx.chash_last_server_index % #ring + 1
            end
            return nil, "all tried"
        end,
        after_balance = release,
    }
end


local times = {}


-- Picks the faster of two random nodes. A node's time is that of its last finished request.
function _M.ewma(servers)
    return {
        get = function(ctx)
            if exhausted(ctx, #servers) then
                return nil, "all tried"
            end
            local left = {}
            for _, server in ipairs(servers) do
                if not (ctx.balancer_tried_servers and ctx.balancer_tried_servers[server]) then
                    left[#left + 1] = server
                end
            end
            local a, b = left[math.random(#left)], left[math.random(#left)]
            return (times[a] or 0) <= (times[b] or 0) and a or b
        end,
        after_balance = function(ctx, before_retry)
            release(ctx, before_retry)
            if not before_retry then
                -- APISIX must not call this for a server that was picked but not used
                local address = ctx.var.upstream_addr
                if address then
                    times[address] = tonumber(ctx.var.upstream_response_time) or 0
                end
            end
        end,
    }
end


-- Returns the sum of least_conn's connections. It is 0 without requests, unless a count was lost.
function _M.connections()
    local sum = 0
    for _, state in pairs(states) do
        for _, n in pairs(state.conns) do
            sum = sum + n
        end
    end
    return sum
end


return _M
