// The order in which candidates are called, from what all processes report about them. The rules are those of the pipeline: a cooldown only
// orders candidates, and one that its provider refuses is not called.
import type { RestingReading } from "../../plugin/readings.ts";
import { AWAY, FAR, promiseOf } from "../../walk/targets/target-rest.ts";
import type { ExplainedCandidate } from "../types.ts";

type Told = Pick<RestingReading, "state" | "until" | "refuses" | "keys" | "score">;

export interface CandidateTurn<C, R> {
  readonly of: C;
  /** The cooldown that counts for the key, else one that counts for other keys alone; undefined: none. */
  readonly rest: R | undefined;
  readonly turn: NonNullable<ExplainedCandidate["turn"]>;
  /** Whether `rest` counts for this request: it moves the candidate behind the others. */
  readonly cooling: boolean;
}

/** `key`: whose request it is. Undefined: a key of which nothing is known, so cooldowns of single keys do not count. */
export function inTurn<C, R extends Told>(
  candidates: readonly C[],
  restsOf: (one: C) => readonly R[],
  { key }: { readonly key: string | undefined },
): CandidateTurn<C, R>[] {
  const known = candidates.map((of) => {
    const all = restsOf(of).toSorted((a, b) => b.until - a.until);
    const own = all.filter(({ keys }) => !keys || (key !== undefined && keys.includes(key)));
    const counts = own.find(({ state }) => AWAY.has(state));
    const rest = counts ?? own[0] ?? all[0];
    return { of, rest, counts, refused: own.some(({ refuses }) => refuses === true) };
  });
  const inCooldown = known.filter(({ counts }) => counts);
  const isLast = ({ counts, rest }: (typeof known)[number]) =>
    counts !== undefined ||
    (rest !== undefined &&
      inCooldown.some((other) => promised(other.counts!) > promised(rest) + FAR));
  const places = known.filter((one) => !isLast(one));
  const cooling = known
    .filter((one) => isLast(one) && !(one.counts && one.refused))
    .toSorted((a, b) => promised((b.counts ?? b.rest)!) - promised((a.counts ?? a.rest)!));
  const called = [...places, ...cooling].map(({ of, rest, counts }, at) => ({
    of,
    rest,
    cooling: counts !== undefined,
    turn: at === 0 ? ("first" as const) : counts ? ("last" as const) : ("next" as const),
  }));
  const refused = known.filter(({ counts, refused: is }) => counts && is);
  return [
    ...called,
    ...refused.map(({ of, rest }) => ({
      of,
      rest,
      cooling: true,
      turn: "not_called" as const,
    })),
  ];
}

const promised = ({ state, score = 1 }: Told): number => promiseOf(state, score ?? 1);
