// Logs the warnings of an accepted config and the problems of a rejected one.
import type { LocatedProblem, LoadPlugin } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import type { ReloadResult } from "../gateway-api.ts";
import { resolve } from "node:path";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import type { ConfigOverrides } from "../../config/expand-config.ts";
import { readDefaultConfig } from "../../lib/package-root.ts";

const formatProblem = (p: LocatedProblem): string =>
  `${p.path === "" ? "" : `${p.path}: `}${p.message}${p.hint === undefined ? "" : ` — ${p.hint}`}`;

const formatLocation = (p: LocatedProblem): string => `${p.file}:${p.line}:${p.column}`;

export function logWarnings(log: Log, problems: readonly LocatedProblem[]): void {
  for (const p of problems)
    if (p.severity === "warning") log.warn({ id: p.id, at: formatLocation(p) }, formatProblem(p));
}

export function logRejection(
  log: Log,
  of: {
    trigger: string;
    generation: number;
    problems: readonly LocatedProblem[];
    /** Changed keys that require a restart. */
    restartKeys?: readonly string[];
  },
): ReloadResult {
  const { trigger, generation, problems, restartKeys } = of;
  const errors = problems
    .filter((p) => p.severity === "error")
    .map((p) =>
      p.line === 0 ? `${p.file}  ${formatProblem(p)}` : `${formatLocation(p)}  ${formatProblem(p)}`,
    );
  log.error(
    { trigger, generation, problems: errors, ...(restartKeys && { restart_keys: restartKeys }) },
    restartKeys
      ? `reload rejected: ${restartKeys.join(", ")} cannot change without a restart`
      : "reload rejected: the config has errors, previous config kept",
  );
  return { ok: false, generation, problems, ...(restartKeys && { restartKeys }) };
}

// Reads and validates the config that the gateway was started with.

/** Source of the config. */
export interface ConfigSource {
  /** Path of gateway.yaml. Undefined if the config that ships with the package is used. */
  configFile: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  loadPlugin: LoadPlugin;
  overrides?: ConfigOverrides;
}

export const readGatewayConfig = ({
  configFile,
  env,
  overrides,
  loadPlugin,
}: ConfigSource): Promise<LoadedConfig> =>
  loadConfig(resolve(configFile ?? "gateway.yaml"), {
    env,
    loadPlugin,
    ...(overrides && { overrides }),
    ...(configFile === undefined && { textOverride: readDefaultConfig() }),
  });
