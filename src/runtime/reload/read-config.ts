// Reads and validates the config that the gateway was started with.
import { resolve } from "node:path";
import type { LoadPlugin } from "../../config/gateway-config.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import type { ConfigOverrides } from "../../config/expand-config.ts";
import { readDefaultConfig } from "../../config/source/default-config.ts";

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
