--- Seconds by a clock that does not step: CLOCK_MONOTONIC, the same in all processes. ngx.now and
-- the expiry of ngx.shared use the wall clock: after a step of that clock, entries would end too
-- early or stay for hours. Times in answers come from ngx.now.
local ffi      = require("ffi")
local C        = ffi.C
local tonumber = tonumber

-- under a name of its own: another module may have declared clock_gettime with other types
ffi.cdef([[int apisix_drain_clock(int id, void *at) __asm__("clock_gettime");]])

local MONOTONIC = ffi.os == "Linux" and 1 or 6
local at        = ffi.new("long[2]")

local _M = {}


--- Seconds since some moment in the past, as a number with fractions.
function _M.now()
    C.apisix_drain_clock(MONOTONIC, at)
    return tonumber(at[0]) + tonumber(at[1]) / 1e9
end


return _M
