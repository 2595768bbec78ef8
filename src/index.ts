// For programs that embed a gateway. May import everything. No other file imports it.
export { createGateway } from "./server/gateway.ts";
export type { GatewayOptions } from "./server/gateway-options.ts";
export { startWorker, type WorkerOptions } from "./runtime/workers/worker-process.ts";
export type {
  RequestExplanation,
  Gateway,
  ReloadResult,
  GatewayStatus,
} from "./runtime/gateway-api.ts";
export { loadConfig } from "./config/load-config.ts";
export { createLoader } from "./loader/plugin-loader.ts";
export { createLog } from "./lib/log/log.ts";
export { SecretMask } from "./lib/log/secret-mask.ts";
