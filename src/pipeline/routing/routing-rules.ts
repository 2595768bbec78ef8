// Routing rules: one for each value of `pick:`. A routing rule orders the candidates of one request
// and assumes that all are healthy. It has no state. Its inputs come from gateway.yaml, the
// catalog, the request, and the targets' measurements. Afterwards, candidates in cooldown are moved
// behind the others, and route hooks are applied.
import { hash } from "node:crypto";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { RoutingStrategy } from "../../model/route-settings.ts";
import { expectedCost } from "../../money/estimate.ts";
import type { OutputHistory } from "../../money/output-history.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { conversationIdOf } from "../exchange/conversation-id.ts";
import type { HostCandidate, MountedFrontend } from "../exchange/mounted.ts";
import { outputHistoryKey, priceTermsOf } from "../metering/price-terms.ts";

/** The inputs of a routing rule. */
export interface RoutingRuleInputs {
  readonly x: Exchange;
  readonly frontend: MountedFrontend;
  readonly facts: RequestFacts;
  readonly operationSpec: OperationSpec;
  readonly outputHistory: Pick<OutputHistory, "p95">;
  /** Returns a random number from 0 to 1, like `Math.random`. */
  readonly random: () => number;
  /**
   * Returns the estimated time to first token of a target, in milliseconds. 0 means unknown, with
   * no call waiting.
   */
  readonly estimateLatency: (candidate: HostCandidate) => number;
}

/**
 * A routing rule. `candidates`: one for each provider, model, and credential, in the order of
 * gateway.yaml.
 */
export interface RoutingRule {
  /** Whether the rule uses the latency of the first token. */
  readonly usesLatency?: true;
  /** Returns all candidates in order, each once. */
  order(candidates: readonly HostCandidate[], of: RoutingRuleInputs): readonly HostCandidate[];
  /** Explains a candidate's position in words, for the operator. */
  explain(
    candidate: HostCandidate,
    candidates: readonly HostCandidate[],
    of: RoutingRuleInputs,
  ): string | undefined;
}

/**
 * Shuffles candidates by their shares: the probability that a candidate is first is its share, and
 * the rest are ordered in the same way. `randomOf`: returns a uniform random number between 0 and 1
 * for each candidate. Candidates without a share come last, in their order.
 */
function weightedShuffle(
  candidates: readonly HostCandidate[],
  randomOf: (seat: HostCandidate) => number,
): readonly HostCandidate[] {
  if (candidates.length < 2) return candidates;
  return candidates
    .map((seat) => ({ seat, at: arrivalTime(randomOf(seat), seat.mounted.share) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map(({ seat }) => seat);
}

/**
 * Returns the time of the first arrival in a process with this rate. In a group of such processes,
 * the probability that a process is first is proportional to its rate.
 */
const arrivalTime = (luck: number, rate: number): number =>
  rate > 0 ? -Math.log(luck) / rate : Infinity;

/** Formats how often a candidate comes first. */
function formatShare(candidate: HostCandidate, candidates: readonly HostCandidate[]): string {
  const all = candidates.reduce((sum, each) => sum + each.mounted.share, 0);
  return all > 0 ? `${Number(((100 * candidate.mounted.share) / all).toFixed(1))} %` : "no share";
}

// Keeps the order of gateway.yaml. The credentials of one model share its calls.
const ordered: RoutingRule = {
  order(candidates, { random }) {
    const list: HostCandidate[] = [];
    for (let from = 0; from < candidates.length;) {
      const { id } = candidates[from]!;
      let to = from + 1;
      while (to < candidates.length && candidates[to]!.id === id) to++;
      if (to - from === 1) list.push(candidates[from]!);
      else list.push(...weightedShuffle(candidates.slice(from, to), random));
      from = to;
    }
    return list;
  },
  explain(candidate, candidates) {
    const own = candidates.filter(({ id }) => id === candidate.id);
    return own.length > 1 ? `${formatShare(candidate, own)} of the model's calls` : undefined;
  },
};

const weighted: RoutingRule = {
  order: (candidates, { random }) => weightedShuffle(candidates, random),
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the calls`,
};

// Orders by the lowest estimated time to first token. Equal candidates keep the order of
// gateway.yaml, and the credentials of one model share its calls.
const fastest: RoutingRule = {
  usesLatency: true,
  order(candidates, of) {
    const base = ordered.order(candidates, of);
    const at = new Map(base.map((seat) => [seat, of.estimateLatency(seat)]));
    return base.toSorted((a, b) => at.get(a)! - at.get(b)!);
  },
  explain(candidate, _seats, of) {
    const ms = of.estimateLatency(candidate);
    return ms > 0 ? `first token after ${Math.round(ms)} ms` : "not measured yet";
  },
};

// Orders candidates by the expected cost of this request, from the catalog's current prices and the
// request's size. The same output size is assumed for all candidates, up to each model's output
// limit. Candidates without a known price are last, because their cost is unlimited.
const cheapest: RoutingRule = {
  order(candidates, of) {
    const base = ordered.order(candidates, of);
    const costs = new Map(estimateCosts(base, of));
    return base.toSorted((a, b) => compareCosts(costs.get(a)!, costs.get(b)!));
  },
  explain(candidate, candidates, of) {
    const cost = estimateCosts(candidates, of).find(([one]) => one === candidate)?.[1];
    return cost === null || cost === undefined
      ? "price unknown"
      : `${formatDollars(cost)} for ${of.operationSpec.priceExamples[0].description}`;
  },
};

function estimateCosts(
  candidates: readonly HostCandidate[],
  { x, facts, operationSpec, outputHistory }: RoutingRuleInputs,
): readonly [HostCandidate, bigint | null][] {
  const at = wallClock();
  const writes = Math.max(
    0,
    ...candidates.map(({ id }) => outputHistory.p95(outputHistoryKey(x, id)) ?? 0),
  );
  return candidates.map((seat) => {
    const { price, limits } = seat.info;
    const cost = expectedCost({
      ...priceTermsOf(seat, facts),
      budgetMode: "expected",
      price: price ?? null,
      input: Math.min(x.inputSize.tokens, limits?.context ?? Infinity),
      output: facts.maxOutput,
      modelMaxOutput: limits?.output,
      typicalOutput: writes,
      n: facts.n,
      hasMedia: facts.media !== undefined || facts.features.includes("audio"),
      exactUsage: facts.exactUsage,
      expectedUsage: facts.expectedUsage,
      operationSpec,
      at,
    });
    return [seat, cost];
  });
}

function compareCosts(a: bigint | null, b: bigint | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : a > b ? 1 : 0;
}

const formatDollars = (nano: bigint): string => `$${Number((Number(nano) / 1e9).toPrecision(3))}`;

// Sends all requests of a conversation to one candidate, because its prompt is cached there. The
// candidate is chosen by rendezvous hashing: the candidate with the highest hash of the
// conversation and its name is used. No state is needed, all processes and gateways choose the same
// candidate, and an added or removed target affects only its own share.
/** Number of bytes of a hash that fit exactly into a double. */
const HASH_BYTES = 6;
const HASH_RANGE = 2 ** (8 * HASH_BYTES);

const sticky: RoutingRule = {
  order(candidates, { x, frontend, random }) {
    const conversation = conversationIdOf(x, frontend.server);
    return weightedShuffle(
      candidates,
      conversation === undefined ? random : (seat) => rendezvousHash(conversation, seat),
    );
  },
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the conversations`,
};

function rendezvousHash(conversation: string, { id, credential }: HostCandidate): number {
  const mixed = hash("sha256", `${conversation}\n${id}\n${credential}`, "buffer");
  return (mixed.readUIntBE(0, HASH_BYTES) + 0.5) / HASH_RANGE;
}

export const ROUTING_RULES: { readonly [P in RoutingStrategy]: RoutingRule } = {
  ordered,
  weighted,
  fastest,
  cheapest,
  sticky,
};

/**
 * Returns the first endpoint of each provider, model, and credential. Endpoints of the same ones
 * must be adjacent.
 */
export function firstEndpoints(candidates: readonly HostCandidate[]): readonly HostCandidate[] {
  const firsts = candidates.filter(
    (one, i) => i === 0 || !isSameCredentialAndModel(one, candidates[i - 1]!),
  );
  return firsts.length === candidates.length ? candidates : firsts;
}

export const isSameCredentialAndModel = (a: HostCandidate, b: HostCandidate): boolean =>
  a.id === b.id && a.credential === b.credential;

/**
 * Applies a rule. All endpoints of one provider, model, and credential move together and keep their
 * order.
 */
export function applyRoutingRule(
  candidates: readonly HostCandidate[],
  rule: RoutingRule,
  of: RoutingRuleInputs,
): readonly HostCandidate[] {
  const firsts = firstEndpoints(candidates);
  if (firsts.length < 2) return candidates;
  const order = rule.order(firsts, of);
  if (firsts === candidates) return order;
  return order.flatMap((seat) => {
    const from = candidates.indexOf(seat);
    let to = from + 1;
    while (to < candidates.length && isSameCredentialAndModel(candidates[to]!, seat)) to++;
    return candidates.slice(from, to);
  });
}

/**
 * Returns the rule for a name. It is chosen when the name is resolved, so a request whose order
 * never changes costs nothing.
 */
export function routingRuleFor(
  candidates: readonly HostCandidate[],
  pick: RoutingStrategy,
): RoutingRule | undefined {
  const firsts = firstEndpoints(candidates);
  const models = new Set(firsts.map(({ id }) => id)).size;
  return firsts.length < 2 || (pick === "ordered" && models === firsts.length)
    ? undefined
    : ROUTING_RULES[pick];
}

/**
 * The request that is routed. `hypothetical`: replaces randomness and measured latency if nothing
 * is sent.
 */
interface OrderInputs extends Pick<
  RoutingRuleInputs,
  "x" | "frontend" | "facts" | "operationSpec"
> {
  readonly gen: Pick<RoutingRuleInputs, "outputHistory">;
  readonly hypothetical?: Pick<RoutingRuleInputs, "random" | "estimateLatency">;
}

/** Orders candidates as they would be called if all are healthy. */
export function orderCandidates(
  of: OrderInputs,
  { routingRule }: { readonly routingRule: RoutingRule | undefined },
  candidates: readonly HostCandidate[],
): readonly HostCandidate[] {
  if (!routingRule || candidates.length < 2) return candidates;
  const { x, frontend, facts, operationSpec, gen } = of;
  const supposed = of.hypothetical ?? liveInputs(x.stream);
  return applyRoutingRule(candidates, routingRule, {
    x,
    frontend,
    facts,
    operationSpec,
    outputHistory: gen.outputHistory,
    ...supposed,
  });
}

function liveInputs(stream: boolean): Pick<RoutingRuleInputs, "random" | "estimateLatency"> {
  const now = performance.now();
  return {
    random: Math.random,
    estimateLatency: ({ mounted: { target } }) => target.latencyOf(stream).estimateMs(now),
  };
}
