// For embedding: a gateway in another program. May import everything; nothing imports it.
export { createGateway } from "./gateway/gateway.ts";
export type { GatewayOptions } from "./gateway/options.ts";
export { startWorker, type WorkerOptions } from "./gateway/workers/process.ts";
export type { RequestExplanation, Gateway, ReloadResult, GatewayStatus } from "./gateway/types.ts";
export { loadConfig } from "./config/load.ts";
export { createLoader } from "./loader/load.ts";
export { createLog } from "./lib/log.ts";
export { SecretMask } from "./lib/mask.ts";
