// What every rig has: arguments, chance that can be repeated, and a last line that says how it went.
import { parseArgs } from "node:util";
import { createSeededRandom } from "../../src/testing/random.ts";

export interface RigResult {
  /** What was violated, in words; none: it holds. */
  readonly wrong: readonly string[];
  readonly counts: { readonly [what: string]: number | string };
  readonly seed: number;
}

export interface Rig {
  /** Its options: numbers, words, and what is said by its name alone. */
  readonly options: { readonly [name: string]: number | string | boolean };
  run(of: Readonly<Record<string, string>>, say: (line: string) => void): Promise<RigResult>;
}

/** The options of a command line, with the rig's own where nothing is said. */
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

/** Laws of speed hold on a machine that runs nothing else: beside other work what they allow is stretched so far. */
export const BESIDE_OTHERS = 10;

/** What the machine may do in between to a commit, in milliseconds. */
const IN_BETWEEN_MS = 50;

/** Whether commits wait longer beside other work than they may, by their p99 with it and without. */
export const waitsMore = (alone: number, beside: number, patience: number): boolean =>
  beside > (2 * alone + IN_BETWEEN_MS) * patience;

export interface Chance {
  (): number;
  /** 0 to n - 1. */
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
