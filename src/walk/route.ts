import { lasts, satisfies } from "../catalogue/policy.ts";
import { fail, type ErrorKind } from "../model/error.ts";
import type { Feature } from "../model/facts.ts";
import type { JsonObject } from "../model/values.ts";
import type { Candidate } from "../plugin/call.ts";
import type { Excluded } from "../plugin/middleware.ts";
import type { Visit } from "./exchange.ts";
import type { Seat } from "./generation.ts";
import { matches } from "./pattern.ts";
import { permit } from "./pictures.ts";
import { policyOf } from "./policy.ts";
import type { Resolution } from "./switchboard.ts";

export interface Plan {
  readonly seats: readonly Seat[];
  readonly on: ReadonlySet<ErrorKind>;
  readonly resolution: Resolution;
  /** Who was left out, by whom and why; `explain` prints them. */
  readonly out: readonly (Excluded & { by: string })[];
}

/** Finds who could serve it: capability, permission, privacy and the route hooks may leave candidates out. */
export async function route(x: Visit): Promise<Plan> {
  const inner = x["~"];
  const { frontend, gen } = inner;
  const { pinned, survey } = inner.received!;
  permit(x);
  const allowed = x.identity?.models;
  const may = (name: string) => allowed?.some((pattern) => matches(pattern, name)) ?? true;
  const resolution = gen.switchboard.resolve(frontend, x.model, x.stream, may);
  const out: (Excluded & { by: string })[] = [];
  const leave = (seat: Seat, by: string, kind: ErrorKind, code: string, message: string) => {
    out.push({
      candidate: seat,
      by,
      kind,
      code,
      message: `${seat.id}[${seat.credential}]: ${message}`,
    });
    return false;
  };
  // Who may go on with an answer was settled when it was made: the ledger's row is this key's.
  const named = pinned !== undefined || may(x.model);
  let seats = resolution.seats.filter((seat) => {
    if (!named && !may(seat.id))
      return leave(seat, "key", "forbidden", "model_not_allowed", "this key may not use it");
    if (pinned && (pinned.credential !== seat.credential || seat.protocol !== x.protocol))
      return leave(seat, "state", "not_found", "not_found", "it was made elsewhere");
    const lacks = lacking(seat, survey.features);
    if (lacks)
      return leave(seat, "catalogue", "unsupported", "capability", `it does not do ${lacks}`);
    if ((survey.n ?? 1) > 1 && seat.lane === "translated" && x.kind === "chat")
      return leave(
        seat,
        "lane",
        "unsupported",
        "n_not_translated",
        "n above 1 only travels verbatim",
      );
    return true;
  });
  if (survey.translate) seats = seats.map((seat) => ({ ...seat, lane: "translated" }));
  if (x.privacy !== "off") seats = seats.map((seat) => narrowed(seat, survey.features));
  let list: readonly Candidate[] = seats;
  for (const hook of frontend.chain.route) {
    if (!hook.applies(x.model, undefined)) continue;
    const kept: Candidate[] = [];
    for (const one of await hook.run(list, x)) {
      if ("candidate" in one) out.push({ ...one, by: hook.id });
      else kept.push(one);
    }
    list = kept;
  }
  if (x.privacy !== "off")
    list = list.filter(
      (c) =>
        satisfies(x.privacy, c.policy) ||
        leave(c as Seat, "privacy", "privacy", "zdr_unavailable", c.policy.because.join(", ")),
    );
  const chosen = first(list as readonly Seat[]);
  if (chosen.length === 0) nobody(x, out);
  const rested = chosen.filter((seat) => gen.rests.resting(seat));
  const fresh = rested.length === 0 ? chosen : chosen.filter((seat) => !rested.includes(seat));
  return { seats: [...spread(fresh), ...rested], on: resolution.on, resolution, out };
}

/** Of a provider, model and credential, the first endpoint that is left. */
function first(list: readonly Seat[]): Seat[] {
  if (list.length === 1) return [list[0]!];
  const seen = new Set<string>();
  return list.filter((seat) => {
    const key = `${seat.id}\n${seat.credential}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** Credentials of one provider and model share its load by weight; the order of models stays. */
function spread(seats: readonly Seat[]): readonly Seat[] {
  if (seats.length < 2) return seats;
  const groups = Map.groupBy(seats, (seat) => seat.id);
  if (groups.size === seats.length) return seats;
  return [...groups.values()].flatMap((group) =>
    group
      .map((seat) => ({
        seat,
        at: Math.random() ** (1 / Math.max(seat["~"].credential.weight, 1e-9)),
      }))
      .toSorted((a, b) => b.at - a.at)
      .map(({ seat }) => seat),
  );
}

/** Absent is unknown, and unknown is forwarded. */
function lacking(seat: Seat, features: readonly Feature[]): Feature | undefined {
  const can = seat.info.can;
  const here = seat["~"].endpoint.endpoint.can;
  if (!can && !here) return undefined;
  return features.find((f) => f !== "stream" && (can?.[f] ?? here?.[f]) === false);
}

/** The features asked for may keep more than the model does. */
function narrowed(seat: Seat, features: readonly Feature[]): Seat {
  if (!features.some((f) => lasts(f, seat.policy.stateful))) return seat;
  return { ...seat, policy: policyOf(seat["~"], seat.info, Date.now(), features) };
}

/** The exclusions' own kind, with every reason. */
function nobody(x: Visit, out: readonly Excluded[]): never {
  const worst = out.find((e) => e.kind === "privacy") ?? out[0];
  if (!worst)
    return fail("unavailable", `Nobody is left to serve ${x.model}.`, { code: "no_candidates" });
  const reasons = out.map((e) => e.message);
  return fail(worst.kind, `Nobody may serve ${x.model}: ${reasons.join("; ")}.`, {
    code: worst.code,
    ...(worst.kind === "privacy" && { param: "Service-ZDR" }),
    details: {
      considered: out.map((e) => ({
        model: e.candidate.id,
        credential: e.candidate.credential,
        code: e.code,
        reason: e.message,
      })) satisfies JsonObject[],
    },
  });
}
