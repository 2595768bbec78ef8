// What a client reads when every candidate was left out: why, of each, and what would do instead.
import { fail, type ErrorKind } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { Survey } from "../../plugin/survey.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate } from "../mounted.ts";
import type { LeftOut } from "./findings.ts";
import { keptBy, paramOf, told } from "./privacy.ts";
import type { May } from "./resolution.ts";

interface RefusalInputs {
  readonly x: Exchange;
  readonly survey: Survey;
  readonly gen: Pick<Generation, "catalogue">;
}

/** How many others are named to a client that is refused. */
const MOST_NAMED = 8;

/** Notes why one is left out; false, for a filter. */
export function leave(
  out: LeftOut[],
  candidate: HostCandidate,
  by: string,
  kind: ErrorKind,
  code: string,
  message: string,
): false {
  out.push({ candidate, by, kind, code, message: `${candidate.id}: ${message}` });
  return false;
}

/** Fails with the kind of the weightiest exclusion, and names every reason. */
export function noneLeft(of: RefusalInputs, out: readonly LeftOut[], may: May): never {
  const { x, survey } = of;
  const worst =
    out.find((e) => e.code === "zdr_feature_conflict") ??
    out.find((e) => e.kind === "privacy") ??
    out[0];
  if (!worst)
    return fail("unavailable", `No candidate is left for ${x.model}.`, { code: "no_candidates" });
  const considered = out.filter((e) => worst.kind !== "privacy" || e.code !== "model_not_allowed");
  const others = worst.kind === "privacy" ? alternatives(of, out, may) : undefined;
  // A client does not learn how many credentials there are: the same reason is said once.
  const reasons = [...new Set(considered.map((e) => e.message))].join("; ");
  const kept = keptBy(worst.candidate as HostCandidate, x.features);
  const instead = others?.length ? ` Would do: ${others.join(", ")}.` : "";
  return fail(worst.kind, `No candidate may serve ${x.model}: ${reasons}.${instead}`, {
    code: worst.code,
    ...(worst.kind === "privacy" && { param: "Service-ZDR" }),
    ...(worst.code === "zdr_feature_conflict" &&
      kept && { param: paramOf(kept, survey.named ?? []) }),
    details: {
      ...(x.privacy !== "off" && { requested: x.privacy }),
      considered: considered.map((e) => ({
        model: e.candidate.id,
        code: e.code,
        reason: e.message,
        ...(e.kind === "privacy" && {
          credential: e.candidate.credential,
          ...told(e.candidate.policy),
        }),
      })) satisfies JsonObject[],
      ...(others && { alternatives: others }),
    },
  });
}

/** Models that this key may use and that would do, those of the same name first. */
function alternatives(
  { x, gen }: RefusalInputs,
  out: readonly LeftOut[],
  may: May,
): readonly string[] {
  const refused = new Set([x.model, ...out.map((e) => e.candidate.id)]);
  const name = (id: string) => id.slice(id.lastIndexOf("/") + 1);
  const same = new Set([...refused].map(name));
  return gen.catalogue
    .list({ kind: x.kind, privacy: x.privacy, may })
    .map(({ id }) => id)
    .filter((id) => !refused.has(id))
    .toSorted((a, b) => Number(same.has(name(b))) - Number(same.has(name(a))))
    .slice(0, MOST_NAMED);
}
