// What a gateway is started with, and the file that it names, read.
import type { LoadedConfig } from "../config/load-config.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";
import type { SecretMask } from "../lib/log/secret-mask.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { FileTexts } from "../config/source/config-files.ts";
import type { ConfigSource } from "../runtime/reload/read-config.ts";
import type { WorkerGeneration } from "../runtime/workers/worker-protocol.ts";
import type { OldProcess } from "./handoff/old-process.ts";
import type { Store } from "../plugin/store/store.ts";
import type { StartupListener } from "../runtime/http/startup-listener.ts";
import type { TransferableStore } from "../runtime/ledger/transferable-store.ts";
import type { DescriptorRegistry } from "./handoff/descriptors.ts";
import type { ContextServices } from "../runtime/services.ts";

export interface GatewayOptions extends ConfigSource {
  log: Log;
  mask: SecretMask;
  version: string;
  /** What comes with the program: what `config.check` may load beside what is mounted. Absent: nothing. */
  isBuiltin?: (use: string, kind: PluginKind) => boolean;
  /** Reload when a file of the config changes. */
  watchesConfig?: boolean;
  /** A person at a terminal stops it: no balancer has to hear of that first. */
  isInteractive?: boolean;
  /** Sockets that a service manager has opened for us, in place of those that the file says. */
  inheritedSockets?: InheritedSockets;
  /** The gateway whose place this one takes. */
  oldProcess?: OldProcess;
  /** The program that a worker runs: what calls `work`. Without one there is one process. */
  workerProgram?: string;
}

/** What there is of it when it starts. */
export interface StartOptions {
  loaded: LoadedConfig;
  config: GatewayConfig;
  contextServices: ContextServices;
  store: Promise<Store>;
  /** Processes. */
  processCount: number;
  transferableStore: TransferableStore;
  descriptors: DescriptorRegistry;
  /** Unix sockets that the gateway before has handed on. */
  handedOverSocketPaths: readonly string[];
  /** What is open in place of the port that serves, until that is. */
  startupListener?: StartupListener | undefined;
}

/** By their numbers: those of clients in the order of `listen`. */
export interface InheritedSockets {
  readonly clients: readonly number[];
  readonly admin: number | undefined;
}

/** As a worker is sent it: the same texts make the same generation everywhere. */
export const toWorkerGeneration = (
  { configFile, env, overrides = {} }: GatewayOptions,
  number: number,
  texts: FileTexts,
): WorkerGeneration => ({
  generation: number,
  file: configFile,
  configTexts: texts,
  env: { ...env },
  overrides,
});
