// For embedding: a gateway in another program. May import everything; nothing imports it.
export { createGateway } from "./gateway/gateway.ts";
export type { GatewayOptions } from "./gateway/options.ts";
export { work, type WorkerOptions } from "./gateway/workers/process.ts";
export type { Explanation, Gateway, Reloaded, Status } from "./gateway/types.ts";
export { loadConfig } from "./config/load.ts";
export { createLoader } from "./loader/load.ts";
export { createLog } from "./lib/log.ts";
export { Mask } from "./lib/mask.ts";
