/** APISIX's own ports, and those of the plugin and of the stand-ins. */
export const PROXY_PORT = 9080
export const CONTROL_PORT = 9090
export const BARRIER_PORT = 9092
export const ADMIN_PORT = 9180
/** The port of etcd. */
export const FOLLOW_PORT = 2379
