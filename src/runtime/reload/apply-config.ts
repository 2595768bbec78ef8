// Applies the new config, or rejects it and keeps the old config. The new config is used by all
// processes or by none.
import type { LoadedConfig } from "../../config/load-config.ts";
import { problem } from "../../config/problems.ts";
import { sortByFileOrder } from "../../config/problem-report.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import type { GenerationSlot, LiveGeneration } from "../generation/generation-slot.ts";
import type { ReloadResult, ReloadTrigger } from "../gateway-api.ts";
import { logRejection, logWarnings, type ConfigSource, readGatewayConfig } from "./read-config.ts";
import { changedStaticKeys } from "./reload-rules.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { readContentHash } from "../../lib/content-hash.ts";

export interface ReloadTarget {
  readonly options: ConfigSource;
  readonly log: Log;
  readonly generations: GenerationSlot;
  build(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<LiveGeneration | { problems: readonly LocatedProblem[] }>;
  /**
   * Applies the config in the other processes. Resolves with the problems if a process rejects the
   * config.
   */
  changeWorkers(
    serving: LiveGeneration,
    loaded: LoadedConfig,
  ): Promise<readonly LocatedProblem[] | undefined>;
  followModelLists(serving: LiveGeneration): void;
}

/** Replaces the generation in all processes, or in none. */
export async function replaceGeneration(
  of: ReloadTarget,
  loaded: LoadedConfig,
  config: GatewayConfig,
): Promise<LiveGeneration | { problems: readonly LocatedProblem[] }> {
  const serving = await of.build(loaded, config);
  if ("problems" in serving) return serving;
  const problems = await of.changeWorkers(serving, loaded);
  if (problems && problems.length > 0) {
    await serving.built.retire();
    return { problems };
  }
  of.generations.swap(serving);
  of.followModelLists(serving);
  return serving;
}

export async function reloadConfig(
  of: ReloadTarget,
  trigger: ReloadTrigger,
): Promise<ReloadResult> {
  const { log } = of;
  const current = of.generations.current;
  const generation = current.built.gen.number;
  const loaded = await readWhenStable(() => readGatewayConfig(of.options), current.loaded.sources);
  const refuse = (problems: readonly LocatedProblem[], restartKeys?: readonly string[]) =>
    logRejection(log, { trigger, generation, problems, ...(restartKeys && { restartKeys }) });
  if (!loaded.config) return refuse(loaded.problems);
  const differing = changedStaticKeys(current.config, loaded.config);
  if (differing.length > 0) return refuse(loaded.problems, differing);
  if (loaded.config.hash === current.config.hash)
    return { ok: true, generation, isUnchanged: true, problems: loaded.problems };
  const were = current.config.providers.size;
  if (were > 0 && loaded.config.providers.size === 0 && !loaded.config.allowEmpty)
    return refuse([
      ...loaded.problems,
      loaded.locate("providers", problem.lastProviderRemoved(were)),
    ]);
  const serving = await replaceGeneration(of, loaded, loaded.config);
  const inOrder = (found: readonly LocatedProblem[]) =>
    sortByFileOrder([...loaded.problems, ...found], loaded.sources);
  if ("problems" in serving) return refuse(inOrder(serving.problems));
  const taken = inOrder(serving.built.warnings);
  logWarnings(log, taken);
  const now = serving.built.gen.number;
  log.info({ trigger, generation: now }, "reloaded");
  return { ok: true, generation: now, problems: taken };
}

// Reads a config only after its files are completely written. While a file is written, it may be
// truncated or incomplete. The files are therefore read twice, with a pause, until both results are
// the same.

/**
 * Pause between two reads, in milliseconds. With the watcher's debounce, a change is applied about
 * 100 ms after the last write.
 */
const STABLE_MS = 50;
/**
 * Maximum wait, in milliseconds. A continuous writer must not delay a reload forever. If the limit
 * is reached, the content is validated as it is.
 */
const MAX_WAIT_MS = 2_000;

interface StabilityTimes {
  readonly stableMs?: number;
  readonly maxWaitMs?: number;
  /** Replaces the pause in tests. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Reads when the files are stable.
 * @param files Files that the read is known to use.
 */
export async function readWhenStable<T extends { readonly sources: readonly string[] }>(
  read: () => Promise<T>,
  files: readonly string[],
  { stableMs = STABLE_MS, maxWaitMs = MAX_WAIT_MS, sleep: pause = sleep }: StabilityTimes = {},
): Promise<T> {
  let before = await readContents(files);
  for (let waited = stableMs; ; waited += stableMs) {
    const found = await read();
    await pause(stableMs);
    const after = await readContents(found.sources);
    const still = [...after].every(([file, hash]) => before.get(file) === hash);
    if (still || waited >= maxWaitMs) return found;
    before = after;
  }
}

const readContents = async (files: readonly string[]): Promise<ReadonlyMap<string, string>> =>
  new Map(
    await Promise.all(files.map(async (file) => [file, await readContentHash(file)] as const)),
  );
