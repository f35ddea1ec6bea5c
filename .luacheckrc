std = "ngx_lua"
max_line_length = 100
unused_args = false
include_files = { "plugin-config/**/*.lua", "test/plugin/fake/**/*.lua", "sandbox/**/*.lua" }
files["test/plugin/fake"] = { read_globals = { "FAKE_ATTR", "FAKE_PLUGINS" } }
files["sandbox"] = { read_globals = { "FAKE_ATTR", "FAKE_APISIX" } }
-- a plain Lua 5.1
for _, name in ipairs({ "dict", "nginx", "tasks", "vm" }) do
    files["sandbox/apisix/lua/" .. name .. ".lua"] = { std = "lua51", globals = { "js", "vm" } }
end
