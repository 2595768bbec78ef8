// Excludes candidates with a reason. If every candidate was excluded, the error for the client
// contains the reason for each, and alternatives.
import { fail, type ErrorKind } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { findRetainedFeature, paramOfFeature, policyDetails } from "../privacy/zero-retention.ts";
import type { ExcludedCandidate, IsNameAllowed } from "./resolution.ts";

interface RejectionInputs {
  readonly x: Exchange;
  readonly facts: RequestFacts;
  readonly gen: Pick<Generation, "catalog">;
}

/** Maximum number of alternatives in the error. */
const MAX_ALTERNATIVES = 8;

/** Records why a candidate is excluded. Always returns false, for use in a filter. */
export function exclude(
  excluded: ExcludedCandidate[],
  candidate: HostCandidate,
  by: string,
  kind: ErrorKind,
  code: string,
  message: string,
): false {
  excluded.push({ candidate, by, kind, code, message: `${candidate.id}: ${message}` });
  return false;
}

/** Throws an error with the kind of the most important exclusion and the reasons for all. */
export function throwNoCandidates(
  of: RejectionInputs,
  excluded: readonly ExcludedCandidate[],
  may: IsNameAllowed,
): never {
  const { x, facts } = of;
  const worst =
    excluded.find((e) => e.code === "zdr_feature_conflict") ??
    excluded.find((e) => e.kind === "privacy") ??
    excluded[0];
  if (!worst)
    return fail("unavailable", `No candidate is available for ${x.model}.`, {
      code: "no_candidates",
    });
  const considered = excluded.filter(
    (e) => worst.kind !== "privacy" || e.code !== "model_not_allowed",
  );
  const others = worst.kind === "privacy" ? findAlternatives(of, excluded, may) : undefined;
  // Each reason is listed once, so that clients cannot determine the number of credentials.
  const reasons = [...new Set(considered.map((e) => e.message))].join("; ");
  const retainedFeature = findRetainedFeature(worst.candidate as HostCandidate, x.features);
  const alternativesText = others?.length ? ` Alternatives: ${others.join(", ")}.` : "";
  return fail(
    worst.kind,
    `No candidate for ${x.model} can serve this request: ${reasons}.${alternativesText}`,
    {
      code: worst.code,
      ...(worst.kind === "privacy" && { param: "Service-ZDR" }),
      ...(worst.code === "zdr_feature_conflict" &&
        retainedFeature && { param: paramOfFeature(retainedFeature, facts.references ?? []) }),
      details: {
        ...(x.privacy !== "off" && { requested: x.privacy }),
        considered: considered.map((e) => ({
          model: e.candidate.id,
          code: e.code,
          reason: e.message,
          ...(e.kind === "privacy" && {
            credential: e.candidate.credential,
            ...policyDetails(e.candidate.policy),
          }),
        })) satisfies JsonObject[],
        ...(others && { alternatives: others }),
      },
    },
  );
}

/**
 * Returns models that this key may use and that could serve the request. Models of the same name
 * come first.
 */
function findAlternatives(
  { x, gen }: RejectionInputs,
  out: readonly ExcludedCandidate[],
  may: IsNameAllowed,
): readonly string[] {
  const refused = new Set([x.model, ...out.map((e) => e.candidate.id)]);
  const name = (id: string) => id.slice(id.lastIndexOf("/") + 1);
  const same = new Set([...refused].map(name));
  return gen.catalog
    .list({ operation: x.operation, privacy: x.privacy, isAllowed: may })
    .map(({ id }) => id)
    .filter((id) => !refused.has(id))
    .toSorted((a, b) => Number(same.has(name(b))) - Number(same.has(name(a))))
    .slice(0, MAX_ALTERNATIVES);
}

// Pins a request that refers to a stored object by ID to the account that can contain the object.
/**
 * Keeps only the candidates of one account, because an ID is valid in one account only. The gateway
 * does not know which account that is. It uses the first account in gateway.yaml whose state is
 * relayed. The choice is therefore the same for each request, regardless of `pick` and of failures.
 */
export function pinToAccount(all: HostCandidate[], excluded: ExcludedCandidate[]): HostCandidate[] {
  const pinned = all.find((one) => one.mounted.provider.stateMode === "relay");
  if (!pinned) return all;
  return all.filter(
    (one) =>
      (one.provider === pinned.provider && one.credential === pinned.credential) ||
      exclude(
        excluded,
        one,
        "state",
        "not_found",
        "account_bound",
        "the request refers to an object that belongs to another account",
      ),
  );
}
