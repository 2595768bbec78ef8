// What a gateway is started with, and the file that it names, read.
import { resolve } from "node:path";
import { defaultText } from "../config/default.ts";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import type { Overrides } from "../config/resolve.ts";
import type { GatewayConfig, LoadPlugin } from "../config/types.ts";
import type { Log } from "../lib/log.ts";
import type { Mask } from "../lib/mask.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { Texts } from "../config/disk.ts";
import type { WorkerConfig } from "./workers/commands.ts";
import type { Predecessor } from "./succession/predecessor.ts";
import type { Store } from "../plugin/store.ts";
import type { WaitingDoor } from "./http/waiting-door.ts";
import type { HeldStore } from "./services/held-store.ts";
import type { Descriptors } from "./succession/descriptors.ts";
import type { ContextServices } from "./services/services.ts";

export interface GatewayOptions {
  /** Undefined: what ships with the package. */
  file: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  log: Log;
  mask: Mask;
  version: string;
  load: LoadPlugin;
  /** What comes with the program: what `config.check` may load beside what is mounted. Absent: nothing. */
  isBuiltin?: (use: string, kind: PluginKind) => boolean;
  overrides?: Overrides;
  /** Reload when a file of the config changes. */
  watch?: boolean;
  /** A person at a terminal stops it: no balancer has to hear of that first. */
  attended?: boolean;
  /** Sockets that a service manager has opened for us, in place of those that the file says. */
  handed?: HandedOver;
  /** The gateway whose place this one takes. */
  predecessor?: Predecessor;
  /** The program that a worker runs: what calls `work`. Without one there is one process. */
  worker?: string;
}

/** What there is of it when it starts. */
export interface StartOf {
  loaded: LoadedConfig;
  config: GatewayConfig;
  contextServices: ContextServices;
  store: Promise<Store>;
  /** Processes. */
  size: number;
  held: HeldStore;
  noted: Descriptors;
  /** Unix sockets that the gateway before has handed on. */
  sockets: readonly string[];
  /** What is open in place of the port that serves, until that is. */
  waiting?: WaitingDoor | undefined;
}

/** By their numbers: those of clients in the order of `listen`. */
export interface HandedOver {
  readonly clients: readonly number[];
  readonly admin: number | undefined;
}

/** As a worker is sent it: the same texts make the same generation everywhere. */
export const orderOf = (
  { file, env, overrides = {} }: GatewayOptions,
  number: number,
  texts: Texts,
): WorkerConfig => ({ number, file, texts, env: { ...env }, overrides });

export const readConfigOf = ({
  file,
  env,
  overrides,
  load,
}: Pick<GatewayOptions, "file" | "env" | "overrides" | "load">): Promise<LoadedConfig> =>
  loadConfig(resolve(file ?? "gateway.yaml"), {
    env,
    load,
    ...(overrides && { overrides }),
    ...(file === undefined && { text: defaultText() }),
  });
