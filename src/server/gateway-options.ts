// What a gateway is started with, and the file that it names, read.
import { resolve } from "node:path";
import { readDefaultConfig } from "../config/source/default-config.ts";
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import type { ConfigOverrides } from "../config/resolve-config.ts";
import type { GatewayConfig, LoadPlugin } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";
import type { SecretMask } from "../lib/log/secret-mask.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { FileTexts } from "../config/source/config-files.ts";
import type { WorkerGeneration } from "../runtime/workers/worker-protocol.ts";
import type { OldProcess } from "./handoff/old-process.ts";
import type { Store } from "../plugin/store/store.ts";
import type { StartupListener } from "../runtime/http/startup-listener.ts";
import type { TransferableStore } from "../runtime/ledger/transferable-store.ts";
import type { DescriptorRegistry } from "./handoff/descriptors.ts";
import type { ContextServices } from "../runtime/services.ts";

export interface GatewayOptions {
  /** Undefined: what ships with the package. */
  configFile: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  log: Log;
  mask: SecretMask;
  version: string;
  loadPlugin: LoadPlugin;
  /** What comes with the program: what `config.check` may load beside what is mounted. Absent: nothing. */
  isBuiltin?: (use: string, kind: PluginKind) => boolean;
  overrides?: ConfigOverrides;
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

export const readGatewayConfig = ({
  configFile,
  env,
  overrides,
  loadPlugin,
}: Pick<
  GatewayOptions,
  "configFile" | "env" | "overrides" | "loadPlugin"
>): Promise<LoadedConfig> =>
  loadConfig(resolve(configFile ?? "gateway.yaml"), {
    env,
    loadPlugin,
    ...(overrides && { overrides }),
    ...(configFile === undefined && { textOverride: readDefaultConfig() }),
  });
