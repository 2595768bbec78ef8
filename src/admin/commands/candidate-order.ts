// Determines the order in which candidates are called, from the reports of all processes. The rules
// are those of the pipeline: a cooldown only changes the order, and a candidate that its provider
// rejects is not called.
import type { CooldownState } from "../../plugin/gateway-stats.ts";
import { COOLDOWN_STATES, SCORE_MARGIN, scoreOf } from "../../pipeline/targets/target-status.ts";
import type { ExplainedCandidate } from "../../runtime/gateway-api.ts";

type ReportedCooldown = Pick<
  CooldownState,
  "state" | "until" | "rejectsRequests" | "keys" | "score"
>;

export interface CandidatePosition<C, R> {
  readonly candidate: C;
  /**
   * The cooldown that applies to the key. Otherwise one that applies only to other keys. Undefined
   * if there is none.
   */
  readonly cooldown: R | undefined;
  readonly callOrder: NonNullable<ExplainedCandidate["callOrder"]>;
  /** Whether `cooldown` applies to this request and moves the candidate behind the others. */
  readonly isCoolingDown: boolean;
}

/**
 * Orders the candidates.
 * @param key Key of the request. If undefined, cooldowns of individual keys do not apply.
 */
export function orderCandidates<C, R extends ReportedCooldown>(
  candidates: readonly C[],
  restsOf: (one: C) => readonly R[],
  { key }: { readonly key: string | undefined },
): CandidatePosition<C, R>[] {
  const known = candidates.map((of) => {
    const all = restsOf(of).toSorted((a, b) => b.until - a.until);
    const own = all.filter(({ keys }) => !keys || (key !== undefined && keys.includes(key)));
    const counts = own.find(({ state }) => COOLDOWN_STATES.has(state));
    const rest = counts ?? own[0] ?? all[0];
    return {
      of,
      rest,
      counts,
      refused: own.some(({ rejectsRequests }) => rejectsRequests === true),
    };
  });
  const inCooldown = known.filter(({ counts }) => counts);
  const isLast = ({ counts, rest }: (typeof known)[number]) =>
    counts !== undefined ||
    (rest !== undefined &&
      inCooldown.some(
        (other) => promiseScoreOf(other.counts!) > promiseScoreOf(rest) + SCORE_MARGIN,
      ));
  const places = known.filter((one) => !isLast(one));
  const cooling = known
    .filter((one) => isLast(one) && !(one.counts && one.refused))
    .toSorted(
      (a, b) => promiseScoreOf((b.counts ?? b.rest)!) - promiseScoreOf((a.counts ?? a.rest)!),
    );
  const called = [...places, ...cooling].map(({ of, rest, counts }, at) => ({
    candidate: of,
    cooldown: rest,
    isCoolingDown: counts !== undefined,
    callOrder: at === 0 ? ("first" as const) : counts ? ("last" as const) : ("next" as const),
  }));
  const refused = known.filter(({ counts, refused: is }) => counts && is);
  return [
    ...called,
    ...refused.map(({ of, rest }) => ({
      candidate: of,
      cooldown: rest,
      isCoolingDown: true,
      callOrder: "not_called" as const,
    })),
  ];
}

const promiseScoreOf = ({ state, score = 1 }: ReportedCooldown): number =>
  scoreOf(state, score ?? 1);
