// A config in place of another one: what it is refused for, and how all processes come to it. Either everything is as it was, or all of them
// answer from the new one.
import type { LoadedConfig } from "../../config/load.ts";
import { problem } from "../../config/problems.ts";
import { inFileOrder } from "../../config/report.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import type { GenerationSlot, LiveGeneration } from "../generation/slot.ts";
import { type GatewayOptions, readConfigOf } from "../options.ts";
import type { Reloaded, ReloadWhy } from "../types.ts";
import { refusal, warn } from "./config-log.ts";
import { readSettled } from "./settled.ts";
import { staticKeys } from "./static-keys.ts";

export interface Reloadable {
  readonly options: GatewayOptions;
  readonly log: Log;
  readonly stage: GenerationSlot;
  build(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<LiveGeneration | { problems: readonly Located[] }>;
  /** The other processes come to it too, or say what is in the way. */
  change(serving: LiveGeneration, loaded: LoadedConfig): Promise<readonly Located[] | undefined>;
  follow(serving: LiveGeneration): void;
}

/** A generation of it answers now everywhere, or nowhere. */
export async function replaced(
  of: Reloadable,
  loaded: LoadedConfig,
  config: GatewayConfig,
): Promise<LiveGeneration | { problems: readonly Located[] }> {
  const serving = await of.build(loaded, config);
  if ("problems" in serving) return serving;
  const problems = await of.change(serving, loaded);
  if (problems && problems.length > 0) {
    await serving.built.retire();
    return { problems };
  }
  of.stage.swap(serving);
  of.follow(serving);
  return serving;
}

export async function reloaded(of: Reloadable, why: ReloadWhy): Promise<Reloaded> {
  const { log } = of;
  const current = of.stage.current;
  const generation = current.built.gen.number;
  const loaded = await readSettled(() => readConfigOf(of.options), current.loaded.sources);
  const refuse = (problems: readonly Located[], refused?: readonly string[]) =>
    refusal(log, { why, generation, problems, ...(refused && { refused }) });
  if (!loaded.config) return refuse(loaded.problems);
  const differing = staticKeys(current.config, loaded.config);
  if (differing.length > 0) return refuse(loaded.problems, differing);
  if (loaded.config.hash === current.config.hash)
    return { ok: true, generation, unchanged: true, problems: loaded.problems };
  const were = current.config.providers.size;
  if (were > 0 && loaded.config.providers.size === 0 && !loaded.config.allowEmpty)
    return refuse([...loaded.problems, loaded.place("providers", problem.noProviderLeft(were))]);
  const serving = await replaced(of, loaded, loaded.config);
  const inOrder = (found: readonly Located[]) =>
    inFileOrder([...loaded.problems, ...found], loaded.sources);
  if ("problems" in serving) return refuse(inOrder(serving.problems));
  const taken = inOrder(serving.built.warnings);
  warn(log, taken);
  const now = serving.built.gen.number;
  log.info({ why, generation: now }, "reloaded");
  return { ok: true, generation: now, problems: taken };
}
