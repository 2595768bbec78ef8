// Explains the data policy of a model: every candidate, the declaration of each level, and the
// reason why the candidate qualifies or not. The command is the same on the control socket of a
// running gateway and on a generation built from its file.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { effectivePolicy, satisfies } from "../../catalog/data-policy.ts";
import { fail, getFault } from "../../model/error.ts";
import type { DataPolicy, EffectivePolicy, Privacy } from "../../model/facts.ts";
import type { HostCandidate } from "../../pipeline/exchange/mounted.ts";
import { effectivePolicyOf, policyLevels } from "../../pipeline/privacy/candidate-policy.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { servesModels } from "../../pipeline/explain.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";

/** Declaration of one level, such as "provider" or "model claude-fable-5*". */
export interface PolicyStatement {
  readonly level: string;
  readonly data: Partial<DataPolicy>;
}

export interface ExplainedRoute {
  readonly id: string;
  readonly credential: string;
  readonly protocol: string | null;
  /** Whether the provider's own declaration is trusted. */
  readonly isTrusted: boolean;
  readonly credentialDeclaration:
    | { readonly declared: boolean; readonly note?: string; readonly until?: string }
    | undefined;
  readonly statements: readonly PolicyStatement[];
  readonly policy: EffectivePolicy;
  readonly satisfies: { readonly required: boolean; readonly strict: boolean };
}

/** Result of `policy.explain`. */
export interface ExplainedPolicy {
  readonly model: string;
  readonly requestedPrivacy: Privacy;
  readonly routes: readonly ExplainedRoute[];
  /** Middleware that send content to other services, which excludes every candidate. */
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
    const { provider, credential } = candidate.mounted;
    const policy = effectivePolicyOf(candidate.mounted, candidate.info, now);
    ways.set(`${candidate.id}\n${candidate.credential}\n${candidate.protocol}`, {
      id: candidate.id,
      credential: candidate.credential,
      protocol: candidate.protocol,
      isTrusted: provider.isPolicyTrusted,
      credentialDeclaration: credential.zdr,
      statements: policyLevels(candidate.mounted, candidate.info),
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

/** Returns every candidate for this name, over all frontends. */
function candidatesFor(
  { frontends, gen }: BuiltGeneration,
  model: string,
): readonly HostCandidate[] {
  let refused: unknown;
  const candidates = frontends.flatMap((frontend) => {
    if (!servesModels(frontend)) return [];
    try {
      return gen.resolver.resolve(frontend, model, false).candidates;
    } catch (problem) {
      if (!getFault(problem)) throw problem;
      refused ??= problem;
      return [];
    }
  });
  if (candidates.length === 0)
    throw refused ?? fail("not_found", "No frontend that serves models is configured.");
  return candidates;
}
