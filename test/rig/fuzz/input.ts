// A hostile input as data: which good one it was made of, and what was changed in it, step by step. So it can be drawn by chance,
// played again by a command, and made smaller while it still does harm.
import type { Chance } from "../rig.ts";

/** One change: which operator, where, and with what. */
export type Edit = readonly [operator: number, where: number, what: number];

export interface HostileInput {
  readonly base: number;
  readonly edits: readonly Edit[];
}

/** Changes text or bytes; whatever the numbers are, it finds a place for them. */
export type Operator<T> = (of: T, where: number, what: number) => T;

const MOST_EDITS = 4;
const NUMBERS = 1_000_003;

export const drawn = (chance: Chance, bases: number, operators: number): HostileInput => ({
  base: chance.below(bases),
  edits: Array.from({ length: 1 + chance.below(MOST_EDITS) }, () => [
    chance.below(operators),
    chance.below(NUMBERS),
    chance.below(NUMBERS),
  ]),
});

export const edited = <T>(good: T, { edits }: HostileInput, operators: readonly Operator<T>[]): T =>
  edits.reduce(
    (of, [operator, where, what]) => operators[operator % operators.length]!(of, where, what),
    good,
  );

/** The fewest edits that still do it, found by leaving out one after the other. */
export async function shrunk(
  input: HostileInput,
  stillFails: (input: HostileInput) => Promise<boolean>,
): Promise<HostileInput> {
  let least = input;
  for (let i = 0; i < least.edits.length;) {
    const fewer = { ...least, edits: least.edits.toSpliced(i, 1) };
    if (await stillFails(fewer)) least = fewer;
    else i++;
  }
  return least;
}

/** One of them, by a number that may be larger than their count. */
export const pick = <T>(of: readonly T[], n: number): T => of[n % of.length]!;

/** As it is written behind `--replay`: "json:3:12.5.7+1.2.3". */
export const spelled = (lane: string, { base, edits }: HostileInput): string =>
  `${lane}:${base}:${edits.map((edit) => edit.join(".")).join("+")}`;

export function read(text: string): { lane: string; input: HostileInput } {
  const [lane = "", base = "", edits = ""] = text.split(":");
  const numbers = (edit: string) => edit.split(".").map(Number) as unknown as Edit;
  return {
    lane,
    input: { base: Number(base), edits: edits === "" ? [] : edits.split("+").map(numbers) },
  };
}
