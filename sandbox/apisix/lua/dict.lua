--- A stand-in for nginx's shared dictionary (lua_shared_dict), with the sizes of its allocator.
local PAGE = 4096


-- The number of bytes that nginx's slab allocator takes for an item: a power of two.
local function size_of(key, value)
    local bytes, class = 64 + #key + (type(value) == "string" and #value or 8), 64
    while class < bytes do
        class = class * 2
    end
    return class
end


--- A shared dictionary (lua_shared_dict). Expiry follows the wall clock of the gateway.
-- @tparam table gateway { clock, ahead, version }
local function new(gateway, capacity)
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
        if till and till <= gateway.clock() + gateway.ahead then
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
        ends[key] = expires and expires > 0 and gateway.clock() + gateway.ahead + expires or nil
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


return new
