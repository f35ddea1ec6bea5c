std = "ngx_lua"
max_line_length = 100
unused_args = false
include_files = { "plugin-config/**/*.lua", "test/plugin/fake/**/*.lua" }
files["test/plugin/fake"] = { read_globals = { "FAKE_ATTR", "FAKE_PLUGINS", "take_parts" } }
