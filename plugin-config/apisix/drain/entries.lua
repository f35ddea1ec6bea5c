--- The deny-list. It lives in a shared dictionary, which serialises its operations; each worker
-- keeps a copy that is good for one generation and until the first entry in it expires.
--
--   gen            number, goes up after every change that a worker must see
--   e|uid|ip|port  number, when the entry expires (seconds since the epoch); port may be empty
--   s|uid|ip|port  true while the entry is sealed. A key of its own, so that sealing and renewing
--                  at the same time in two workers need no lock and a renewal cannot unseal
--   b|uid|ip|port  number of bypasses
--   l|uid|ip|port  number of requests that were sent there although it was sealed: nothing of ours
--                  does that, so one that fails can not go unnoticed
--
-- Only operations that never evict are used: a full dictionary is an error to report, and must
-- not silently cost another pod its entry.
local setmetatable = setmetatable
local ngx_now      = ngx.now
local str_match    = string.match
local str_byte     = string.byte
local str_sub      = string.sub
local tonumber     = tonumber
local pairs        = pairs
local ipairs       = ipairs
local huge         = math.huge

local BYTE_E = str_byte("e")

local _M = { DRAINING = "draining", SEALED = "sealed" }
local mt = { __index = _M }


local function id_of(entry)
    return entry.uid .. "|" .. entry.ip .. "|" .. (entry.port or "")
end


--- @tparam table dict an ngx.shared dictionary that only entries use
function _M.new(dict)
    dict:safe_add("gen", 0)
    return setmetatable({
        dict   = dict,
        parsed = {},
        -- what this worker saw last: good for a first guess that costs nothing
        set    = { gen = -1, n = 0, expires = 0, ips = {} },
    }, mt)
end


local function forget(dict, id)
    dict:delete("e|" .. id)
    dict:delete("s|" .. id)
    dict:delete("b|" .. id)
    dict:delete("l|" .. id)
end


--- Sets, renews or seals one entry.
-- @tparam table entry { uid, ip (canonical), port?, state, ttl }
-- @treturn boolean stored
-- @treturn string|nil "no memory" when the dictionary is full; what was there before stays
function _M:put(entry)
    local dict, ttl = self.dict, entry.ttl
    local id = id_of(entry)
    local expires = ngx_now() + ttl
    local changed, fresh = false, false

    -- replace and safe_add are atomic: were the entry deleted by another worker in between,
    -- a renewal that does not bump the generation would never be seen
    if not dict:replace("e|" .. id, expires, ttl) then
        local ok, err = dict:safe_set("b|" .. id, 0, ttl)
        if ok then
            ok, err = dict:safe_set("l|" .. id, 0, ttl)
        end
        if ok then
            ok, err = dict:safe_set("e|" .. id, expires, ttl)
        end
        if not ok then
            forget(dict, id)
            return false, err
        end
        changed, fresh = true, true
    else
        dict:expire("b|" .. id, ttl)
        dict:expire("l|" .. id, ttl)
    end

    if entry.state == _M.SEALED then
        local ok, err = dict:safe_add("s|" .. id, true, ttl)
        if ok then
            changed = true
        elseif err == "exists" then
            dict:expire("s|" .. id, ttl)
        else
            if fresh then
                forget(dict, id)
            end
            return false, err
        end
    else
        dict:expire("s|" .. id, ttl)
    end

    if changed then
        dict:incr("gen", 1)
    end
    return true
end


local function load(self, gen)
    local dict, old = self.dict, self.parsed
    local now = ngx_now()
    local parsed, list, ips = {}, {}, {}
    local expires = huge

    for _, key in ipairs(dict:get_keys(0)) do
        local till = str_byte(key, 1) == BYTE_E and dict:get(key)
        if till and till > now then
            local fixed = old[key]
            if not fixed then
                local uid, ip, port = str_match(key, "^e|([^|]+)|([^|]+)|(%d*)$")
                fixed = { id = str_sub(key, 3), uid = uid, ip = ip, port = tonumber(port) }
            end
            parsed[key] = fixed

            local entry = {
                id = fixed.id, uid = fixed.uid, ip = fixed.ip, port = fixed.port,
                sealed = dict:get("s|" .. fixed.id) == true, expires = till,
            }
            list[#list + 1] = entry
            local same = ips[entry.ip]
            if same then
                same[#same + 1] = entry
            else
                ips[entry.ip] = { entry }
            end
            expires = till < expires and till or expires
        end
    end

    self.parsed = parsed
    self.set = { gen = gen, n = #list, list = list, ips = ips, expires = expires }
    return self.set
end


--- The deny-list as it is now. Two comparisons and one read of the dictionary, unless it changed.
function _M:current()
    local set = self.set
    -- the generation is read before the keys: a change in between is loaded twice, never missed
    local gen = self.dict:get("gen") or 0
    if gen == set.gen and (set.n == 0 or ngx_now() < set.expires) then
        return set
    end
    return load(self, gen)
end


--- What a set says of an address.
-- @treturn string|nil "sealed", "draining" or nil
function _M.level(set, addr)
    local same = set.ips[addr.ip]
    if not same then
        return nil
    end

    local level
    for i = 1, #same do
        local entry = same[i]
        if not entry.port or entry.port == addr.port then
            if entry.sealed then
                return _M.SEALED
            end
            level = _M.DRAINING
        end
    end
    return level
end


--- Counts a bypass on every entry that covers the address.
function _M:bypassed(set, addr)
    for _, entry in ipairs(set.ips[addr.ip] or {}) do
        if not entry.port or entry.port == addr.port then
            self.dict:incr("b|" .. entry.id, 1)
        end
    end
end


--- How often this entry was bypassed.
function _M:bypasses(entry)
    return self.dict:get("b|" .. entry.id) or 0
end


--- Counts a request that is sent to this address whatever the deny-list says.
function _M:passed(set, addr)
    for _, entry in ipairs(set.ips[addr.ip] or {}) do
        if entry.sealed and (not entry.port or entry.port == addr.port) then
            self.dict:incr("l|" .. entry.id, 1)
        end
    end
end


--- How many were, since it was sealed.
function _M:late(entry)
    return self.dict:get("l|" .. entry.id) or 0
end


--- When it expires. A renewal is no change that workers must see, so it is not in their copies.
function _M:expires(entry)
    return self.dict:get("e|" .. entry.id) or entry.expires
end


--- The stored entry with the same uid, ip and port, or nil.
function _M:find(entry)
    local id = id_of(entry)
    local expires = self.dict:get("e|" .. id)
    if not expires then
        return nil
    end
    return {
        id = id, uid = entry.uid, ip = entry.ip, port = entry.port,
        sealed = self.dict:get("s|" .. id) == true, expires = expires,
    }
end


--- Removes every entry of these uids. @treturn number how many entries there were
function _M:remove(uids)
    local wanted, removed = {}, 0
    for _, uid in ipairs(uids) do
        wanted[uid] = true
    end

    self.set = { gen = -1, n = 0, expires = 0, ips = {} }
    for _, entry in ipairs(self:current().list) do
        if wanted[entry.uid] then
            forget(self.dict, entry.id)
            removed = removed + 1
        end
    end
    if removed > 0 then
        self.dict:incr("gen", 1)
    end
    return removed
end


--- Entries by uid. @treturn table found @treturn table uids with no entry
function _M:of_uids(uids)
    local wanted, found, unknown = {}, {}, {}
    for _, uid in ipairs(uids) do
        wanted[uid] = wanted[uid] or false
    end
    for _, entry in ipairs(self:current().list) do
        if wanted[entry.uid] ~= nil then
            wanted[entry.uid] = true
            found[#found + 1] = entry
        end
    end
    for uid, seen in pairs(wanted) do
        if not seen then
            unknown[#unknown + 1] = uid
        end
    end
    return found, unknown
end


return _M
