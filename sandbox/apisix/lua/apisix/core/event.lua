-- A stand-in for apisix.core.event: each kind of event has one handler.
local events = {}


return {
    CONST = { BUILD_ROUTER = 1 },
    push = function(type, ...)
        if events[type] then
            events[type](...)
        end
    end,
    register = function(type, handler)
        events[type] = handler
    end,
    unregister = function(type)
        events[type] = nil
    end,
}
