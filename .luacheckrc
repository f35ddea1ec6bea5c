std = "ngx_lua"
max_line_length = 100
unused_args = false
include_files = { "plugin-config/**/*.lua", "test/plugin/fake/**/*.lua", "sandbox/**/*.lua" }
files["test/plugin/fake"] = { read_globals = { "FAKE_ATTR", "FAKE_PLUGINS", "take_parts" } }
files["sandbox"] = { read_globals = { "FAKE_ATTR" } }
-- a plain Lua 5.1
files["sandbox/apisix/lua/vm.lua"] = { std = "lua51", globals = { "js", "vm" } }
