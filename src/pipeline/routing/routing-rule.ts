// A pick says in which order the candidates of one request are asked while all of them are well. It keeps nothing: what it goes by
// stands in gateway.yaml, in the catalog, in the request, or is known of targets. What rests is put behind the others after it, and
// so is what a route hook says.
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import type { OutputHistory } from "../../money/output-history.ts";
import type { HostCandidate, MountedFrontend } from "../exchange/mounted.ts";

/** What a pick may read of a request. */
export interface RoutingRuleInputs {
  readonly x: Exchange;
  readonly frontend: MountedFrontend;
  readonly facts: RequestFacts;
  readonly operationSpec: OperationSpec;
  readonly outputHistory: Pick<OutputHistory, "p95">;
  /** 0 to 1, as Math.random. */
  readonly random: () => number;
  /** How many milliseconds a target is reckoned to take to its first content; 0: unknown, and nothing is waited for. */
  readonly estimateLatency: (candidate: HostCandidate) => number;
}

/** `seats`: one candidate for each provider, model and credential, in the order of gateway.yaml. */
export interface RoutingRule {
  /** It goes by the first content of its calls. */
  readonly usesLatency?: true;
  /** Each of them once. */
  order(candidates: readonly HostCandidate[], of: RoutingRuleInputs): readonly HostCandidate[];
  /** Why one of them stands where it does, in words for the operator. */
  explain(
    candidate: HostCandidate,
    candidates: readonly HostCandidate[],
    of: RoutingRuleInputs,
  ): string | undefined;
}
