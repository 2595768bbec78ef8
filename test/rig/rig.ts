// Shared parts of rigs: arguments, reproducible randomness, and a last line with the result.
import { parseArgs } from "node:util";
import { createSeededRandom } from "../../src/testing/random.ts";

export interface RigResult {
  /** Violations, in words. None: passed. */
  readonly wrong: readonly string[];
  readonly counts: { readonly [what: string]: number | string };
  readonly seed: number;
}

export interface Rig {
  /** Its options: numbers, words, and flags. */
  readonly options: { readonly [name: string]: number | string | boolean };
  run(of: Readonly<Record<string, string>>, say: (line: string) => void): Promise<RigResult>;
}

/** Options of a command line, with the rig's defaults. */
export function parseRigOptions(rig: Rig, argv: readonly string[]): Record<string, string> {
  const { values } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Object.entries(rig.options).map(([name, value]) => [
        name,
        { type: typeof value === "boolean" ? ("boolean" as const) : ("string" as const) },
      ]),
    ),
  });
  return Object.fromEntries(
    Object.entries(rig.options).map(([name, value]) => [name, String(values[name] ?? value)]),
  );
}

/** "PASS crash kills=50 … seed=7": the last line of every rig. */
export function formatResult(name: string, { wrong, counts, seed }: RigResult): string {
  const told = Object.entries(counts).map(([what, count]) => `${what}=${count}`);
  return [
    wrong.length === 0 ? "PASS" : "FAIL",
    name,
    ...told,
    `violations=${wrong.length}`,
    `seed=${seed}`,
  ].join(" ");
}

/** Time limits apply on an idle machine. This is their factor on a busy one. */
export const BESIDE_OTHERS = 10;

/** Maximum delay of a commit by the machine, in milliseconds. */
const IN_BETWEEN_MS = 50;

/** Whether other work delays commits beyond the limit, by their p99 with and without it. */
export const waitsMore = (alone: number, beside: number, patience: number): boolean =>
  beside > (2 * alone + IN_BETWEEN_MS) * patience;

export interface Chance {
  (): number;
  /** Returns a number from 0 to n - 1. */
  below(n: number): number;
  one<T>(of: readonly T[]): T;
  often(share: number): boolean;
}

export function createChance(seed: number): Chance {
  const next = createSeededRandom(seed);
  const below = (n: number) => Math.floor(next() * n);
  return Object.assign(() => next(), {
    below,
    one: <T>(of: readonly T[]) => of[below(of.length)]!,
    often: (share: number) => next() < share,
  });
}
