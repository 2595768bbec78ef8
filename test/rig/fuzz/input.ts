// A hostile input as data: the valid input that it is based on, and its changes, step by step. It
// can be drawn at random, repeated by a command, and minimized while it still causes the failure.
import type { Chance } from "../rig.ts";

/** One change: operator, position, and value. */
export type Edit = readonly [operator: number, where: number, what: number];

export interface HostileInput {
  readonly base: number;
  readonly edits: readonly Edit[];
}

/** Changes text or bytes. It finds a position for any numbers. */
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

/** The smallest set of edits with the same failure, found by omitting one after another. */
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

/** Selects one of them, by a number that may exceed their count. */
export const pick = <T>(of: readonly T[], n: number): T => of[n % of.length]!;

/** Form of the `--replay` option: "json:3:12.5.7+1.2.3". */
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
