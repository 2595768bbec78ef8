// A batch on its way between the threads, as one string: cloning many small objects costs several times as much, on both
// sides. Amounts are integers beyond what JSON's numbers hold, so they travel as decimal text.
import type { Command, Verdict } from "tollgate/plugin";
import { fromJson, toJson } from "./tagged.ts";

/** Where an amount may stand in the commands that every call has. */
const AMOUNTS = ["holdNano", "costNano", "upstreamCostNano"] as const;
type Loose = Record<string, unknown>;

/** A command that holds amounts elsewhere too. */
interface Rare {
  rare: string;
}

const everyday = (c: Command): boolean =>
  (c.do === "reserve" && c.claims.length === 0) ||
  (c.do === "settle" && c.parts === undefined) ||
  c.do === "progress";

export const pack = (batch: readonly Command[]): string => JSON.stringify(batch.map(packed));

function packed(command: Command): object {
  if (!everyday(command)) return { rare: toJson(command) } satisfies Rare;
  const loose: Loose = { ...command };
  for (const name of AMOUNTS)
    if (typeof loose[name] === "bigint") loose[name] = String(loose[name]);
  return loose;
}

export const unpack = (text: string): Command[] => (JSON.parse(text) as Loose[]).map(unpacked);

function unpacked(loose: Loose): Command {
  if (typeof loose["rare"] === "string") return fromJson<Command>(loose["rare"]);
  for (const name of AMOUNTS)
    if (typeof loose[name] === "string") loose[name] = BigInt(loose[name]);
  return loose as unknown as Command;
}

/** Mostly nothing is to be told: then it is how many. */
export type Verdicts = number | readonly Verdict[];

export const told = (verdicts: readonly Verdict[]): Verdicts =>
  verdicts.every((v) => v.ok && v.limits === undefined) ? verdicts.length : verdicts;

const FINE: Verdict = { ok: true };

export const heard = (verdicts: Verdicts): readonly Verdict[] =>
  typeof verdicts === "number" ? Array.from({ length: verdicts }, () => FINE) : verdicts;
