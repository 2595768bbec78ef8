// What becomes of data on the way to a model, as an operator asks: every way, what each level says of it, and why it would do
// or would not. The same on the control socket of a running gateway and on a rehearsal of its file.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { effectivePolicy, satisfies } from "../../catalog/data-policy.ts";
import { fail, getFault } from "../../model/error.ts";
import type { DataPolicy, EffectivePolicy, Privacy } from "../../model/facts.ts";
import type { HostCandidate } from "../../pipeline/exchange/mounted.ts";
import { effectivePolicyOf, policyLevels } from "../../pipeline/privacy/candidate-policy.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";

/** What one level has to say: "provider", "model claude-fable-5*". */
export interface PolicyStatement {
  readonly level: string;
  readonly data: Partial<DataPolicy>;
}

export interface ExplainedRoute {
  readonly id: string;
  readonly credential: string;
  readonly protocol: string | null;
  /** Whether what this provider says of itself is believed. */
  readonly isTrusted: boolean;
  readonly credentialDeclaration:
    | { readonly declared: boolean; readonly note?: string; readonly until?: string }
    | undefined;
  readonly statements: readonly PolicyStatement[];
  readonly policy: EffectivePolicy;
  readonly satisfies: { readonly required: boolean; readonly strict: boolean };
}

/** The answer of `policy.explain`. */
export interface ExplainedPolicy {
  readonly model: string;
  readonly requestedPrivacy: Privacy;
  readonly routes: readonly ExplainedRoute[];
  /** Middleware that sends content elsewhere, and so closes every way. */
  readonly blockedBy: readonly string[];
}

export function createPolicyCommands(built: () => BuiltGeneration, now: () => number = wallClock) {
  return withInputChecks({
    "policy.explain": async ({ model, privacy = "off" }): Promise<ExplainedPolicy> =>
      explainPolicy(built(), model, privacy, now()),
  });
}

function explainPolicy(
  built: BuiltGeneration,
  model: string,
  wanted: Privacy,
  now: number,
): ExplainedPolicy {
  const ways = new Map<string, ExplainedRoute>();
  for (const candidate of candidatesFor(built, model)) {
    const { provider, credential } = candidate["~"];
    const policy = effectivePolicyOf(candidate["~"], candidate.info, now);
    ways.set(`${candidate.id}\n${candidate.credential}\n${candidate.protocol}`, {
      id: candidate.id,
      credential: candidate.credential,
      protocol: candidate.protocol,
      isTrusted: provider.isPolicyTrusted,
      credentialDeclaration: credential.zdr,
      statements: policyLevels(candidate["~"], candidate.info),
      policy,
      satisfies: { required: satisfies("required", policy), strict: satisfies("strict", policy) },
    });
  }
  const closed = built.middleware.filter(
    ({ sends, isPolicyTrusted }) =>
      sends !== "nowhere" &&
      !satisfies(
        wanted === "off" ? "required" : wanted,
        effectivePolicy({ provider: sends, protocol: null, trusted: isPolicyTrusted, now }),
      ),
  );
  return {
    model,
    requestedPrivacy: wanted,
    routes: [...ways.values()],
    blockedBy: closed.map(({ id }) => id),
  };
}

/** Every way that a request for this name could take, whichever frontend it comes to. */
function candidatesFor(
  { frontends, gen }: BuiltGeneration,
  model: string,
): readonly HostCandidate[] {
  let refused: unknown;
  const candidates = frontends.flatMap((frontend) => {
    if (!frontend.server) return [];
    try {
      return gen.resolver.resolve(frontend, model, false).candidates;
    } catch (problem) {
      if (!getFault(problem)) throw problem;
      refused ??= problem;
      return [];
    }
  });
  if (candidates.length === 0)
    throw refused ?? fail("not_found", "No frontend is mounted that speaks to models.");
  return candidates;
}
