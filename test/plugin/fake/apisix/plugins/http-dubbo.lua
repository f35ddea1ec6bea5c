-- A stand-in for apisix/plugins/http-dubbo.lua: it connects to the picked node by itself, and reads
-- the client's body after that. With `pass`, it leaves the request to nginx.
local ngx = ngx


local function before_proxy(_, ctx)
    local sock, server = ngx.socket.tcp(), ctx.picked_server
    if ngx.var.arg_pass then
        return nil
    end
    assert(sock:connect(server.host, server.port))
    ngx.req.read_body()
    sock:send("GET " .. ngx.var.request_uri .. " HTTP/1.0\r\n\r\n")
    local line = sock:receive("*l")
    sock:close()
    return tonumber(line:match(" (%d+) "))
end


return { init = function() end, destroy = function() end, before_proxy = before_proxy }
