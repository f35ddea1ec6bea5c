import { fileURLToPath } from 'node:url'

export interface GatewayOptions {
  /** nginx worker processes, default 3. */
  workers?: number
  /** Whether `lua_module_hook` loads the plugin. Default `hook`. */
  load?: 'hook' | 'none'
  /** Plugins of the stand-in for APISIX (fake/apisix/plugins/). */
  plugins?: readonly string[]
  /** Size of the deny-list's dictionary, default `2m`. */
  dictionary?: string
  /** Size of the dictionary of counts, default `2m`; empty: no dictionary of counts. */
  counts?: string
  /** More settings of `plugin_attr.apisix-drain`, as fields of a Lua table. */
  attr?: string
  /** Lua that runs in each worker before APISIX starts. */
  before?: string
  /** Lua that runs before anything else is loaded. */
  early?: string
  /** Lua of the balancer phase, as in an nginx.conf of the user's own; default: APISIX's. */
  balancer?: string
  /** More directives for the gateway's server. */
  server?: string
  /** Certificates that Lua trusts when it connects, like APISIX's `ssl_trusted_certificate`. */
  trust?: string
  /** Certificate and key files. With these files, the Barrier API also listens with TLS. */
  tls?: { cert: string; key: string }
  /** Another `server` block for the Barrier API, such as the chart's `httpEnd`; default: `barrierServer`. */
  httpEnd?: (at: Addresses) => string
  /** The folder of the plugin; default: `plugin-config/`. */
  plugin?: string
  /** A program, with its arguments, that runs nginx. */
  under?: readonly string[]
}

export interface Addresses {
  readonly dir: string
  readonly gateway: string
  readonly h2: string
  readonly barrier: string
  readonly tls: string
  readonly door: string
  readonly token: string
}

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** The plugin's own folder. */
export const PLUGIN = path('../../plugin-config/')

/** `;;` adds nginx's default path, which leads to the Lua of the system's packages (lua-resty-core, lua-cjson). */
const luaPath = (plugin: string) =>
  `${path('./fake/')}?.lua;${path('./fake/')}?/init.lua;${path('../../sandbox/apisix/lua/')}?.lua;${plugin}?.lua;;`

const barrierServer = (at: Addresses, tls: GatewayOptions['tls']) => `server {
    listen ${at.barrier};
    ${tls ? `listen ${at.tls} ssl;` : ''}
    ${tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};` : ''}
    client_max_body_size 2m;
    client_body_buffer_size 1m;
    location / { content_by_lua_block { require("apisix.drain.api").serve() } }
  }`

/** An nginx that looks like APISIX to the plugin: dictionaries, phases, and the barrier's own server. */
export function nginxConf(at: Addresses, options: GatewayOptions): string {
  const load = options.load ?? 'hook'
  const counts = options.counts ?? '2m'
  const plugins = options.plugins ?? []
  return `
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
${process.getuid?.() === 0 ? 'user root root;' : ''}
worker_processes ${options.workers ?? 3};
worker_shutdown_timeout 60s;
pid ${at.dir}/nginx.pid;
error_log ${at.dir}/error.log notice;
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path ${at.dir}/body; proxy_temp_path ${at.dir}/proxy;
  fastcgi_temp_path ${at.dir}/f; uwsgi_temp_path ${at.dir}/u; scgi_temp_path ${at.dir}/s;
  lua_package_path "${luaPath(options.plugin ?? PLUGIN)}";
  lua_shared_dict stand-in 1m;
  ${options.trust ? `lua_ssl_trusted_certificate ${options.trust};` : ''}
  lua_shared_dict apisix-drain ${options.dictionary ?? '2m'};
  ${counts === '' ? '' : `lua_shared_dict apisix-drain-counts ${counts};`}
  upstream backend {
    server 0.0.0.1;
    balancer_by_lua_block { ${options.balancer ?? 'apisix.http_balancer_phase()'} }
    keepalive 64;
  }
  init_by_lua_block {
    require "resty.core"
    ${options.early ?? ''}
    FAKE_ATTR = { token_file = "${at.dir}/token", ${options.attr ?? ''} }
    FAKE_PLUGINS = { ${plugins.map(name => `"${name}"`).join(', ')} }
    ${load === 'hook' ? 'require "apisix.drain.hook"' : ''}
    apisix = require("apisix")
  }
  init_worker_by_lua_block {
    ${options.before ?? ''}
    apisix.http_init_worker()
  }
  exit_worker_by_lua_block { apisix.http_exit_worker() }
  server {
    listen ${at.gateway} backlog=1024;
    listen ${at.h2} http2;
    ${options.server ?? ''}
    location / {
      set $upstream_host $http_host;
      set $upstream_upgrade '';
      set $upstream_connection '';
      access_by_lua_block { apisix.http_access_phase() }
      proxy_http_version 1.1;
      proxy_set_header Host $upstream_host;
      proxy_set_header Upgrade $upstream_upgrade;
      proxy_set_header Connection $upstream_connection;
      proxy_connect_timeout 2s;
      proxy_pass http://backend;
      header_filter_by_lua_block { apisix.http_header_filter_phase() }
      log_by_lua_block { apisix.http_log_phase() }
    }
    location @grpc_pass {
      access_by_lua_block { apisix.grpc_access_phase() }
      grpc_pass grpc://backend;
      header_filter_by_lua_block { apisix.http_header_filter_phase() }
      log_by_lua_block { apisix.http_log_phase() }
    }
  }
  server {
    listen ${at.door};
    location / { client_body_buffer_size 1m; content_by_lua_block { apisix.test_door() } }
  }
  ${options.httpEnd?.(at) ?? barrierServer(at, options.tls)}
}
`
}
