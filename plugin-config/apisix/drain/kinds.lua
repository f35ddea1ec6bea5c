--- Separates ordinary requests, which end by themselves, from long-lived ones. An ending pod waits
-- only for ordinary requests. After SIGTERM, the pod itself ends the long-lived ones in their own
-- protocol; no other component can.
--
--   upgraded   status 101: a websocket, or any other protocol
--   sse        the content type of server-sent events
--   stream     a gRPC answer that has begun and lasts for over a second (a call with one answer
--              gets its header and its end at once), and any other answer that has begun and
--              lasts for longer than `stream_after`
local clock_now    = require("apisix.drain.host").now
local ngx          = ngx
local type         = type
local floor        = math.floor
local str_find     = string.find

local GRPC_AFTER = 1    -- seconds

local _M = {}
local mt = { __index = _M }


--- @tparam table inflight of this worker
-- @tparam number stream_after seconds; 0: an answer is never a stream because of its age
function _M.new(inflight, stream_after)
    return setmetatable({
        inflight = inflight, stream_after = stream_after,
        -- the time of the last scan: every request can read it without a call of the clock
        now = clock_now(),
        -- counters that had a long-lived request in the last scan
        dated = {},
    }, mt)
end


--- An answer begins: called in the header filter of every counted request.
-- @tparam table ctx its api_ctx
function _M:begin(ctx)
    ctx._drain_began = self.now
    if ngx.status == 101 then
        return self.inflight:lengthen(ctx, "upgraded")
    end
    local content = ngx.header.content_type
    if type(content) ~= "string" then
        return
    end
    if str_find(content, "text/event-stream", 1, true) == 1 then
        self.inflight:lengthen(ctx, "sse")
    elseif str_find(content, "application/grpc", 1, true) == 1 then
        ctx._drain_grpc = true
    end
end


local function is_stream(self, ctx, age)
    if ctx._drain_grpc then
        return age >= GRPC_AFTER
    end
    return self.stream_after > 0 and age >= self.stream_after
end


--- Finds answers that have become streams, and the oldest long-lived request of each address.
-- Called about once a second.
function _M:scan()
    local inflight = self.inflight
    local held, kinds, store = inflight.held, inflight.kinds, inflight.store
    local now, oldest = clock_now(), {}
    for ctx, counter in pairs(held) do
        local began = ctx._drain_began
        if began then
            if not kinds[ctx] and is_stream(self, ctx, now - began) then
                inflight:lengthen(ctx, "stream")
            end
            if kinds[ctx] and began < (oldest[counter] or now + 1) then
                oldest[counter] = began
            end
        end
    end

    for counter in pairs(self.dated) do
        if not oldest[counter] then
            store:set_oldest(counter, 0)
        end
    end
    for counter, began in pairs(oldest) do
        store:set_oldest(counter, floor(began))
    end
    self.dated, self.now = oldest, now
end


return _M
