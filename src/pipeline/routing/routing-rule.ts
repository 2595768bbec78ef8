// A routing rule orders the candidates of one request, assuming that all are healthy. It has no
// state. Its inputs come from gateway.yaml, the catalog, the request, and the targets'
// measurements. Afterwards, candidates in cooldown are moved behind the others, and route hooks are
// applied.
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import type { OutputHistory } from "../../money/output-history.ts";
import type { HostCandidate, MountedFrontend } from "../exchange/mounted.ts";

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
  /** Whether the rule uses the latency of the first content. */
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
