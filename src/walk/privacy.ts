// Service-ZDR, as the walk keeps it: what may not be asked, who may hear of it, and what the answer says about that. The zdr
// middleware decides what holds for a request; nothing that any middleware does afterwards can loosen it.
import { effectivePolicy, lasts, satisfies } from "../catalogue/policy.ts";
import { fail } from "../model/error.ts";
import type { Control, EffectivePolicy, Feature } from "../model/facts.ts";
import type { Body, Json } from "../model/values.ts";
import type { Attempt } from "./call.ts";
import type { Visit } from "./exchange.ts";
import type { Seat } from "./generation.ts";
import type { Departure } from "./outgoing.ts";
import { policyOf } from "./policy.ts";

/** On the head: a wish that nobody here can grant is refused, never ignored. */
export function keepPrivate(x: Visit): void {
  const inner = x["~"];
  if (!inner.tightened && inner.req.headers["service-zdr"] !== undefined)
    fail("invalid", "Service-ZDR cannot be honoured here: the zdr middleware is not mounted.", {
      code: "invalid_service_zdr",
      param: "Service-ZDR",
    });
  if (x.privacy === "off") return;
  if (!inner.tightened)
    fail("privacy", "This key asks for a data policy, and the zdr middleware is not mounted.", {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  for (const { id, sends, trusted } of inner.frontend.chain.senders) {
    if (sends === "nowhere") continue;
    const policy = effectivePolicy({ provider: sends, protocol: null, trusted, now: Date.now() });
    if (!satisfies(x.privacy, policy))
      fail("privacy", `${id} sends content to a place whose data policy is not known to be zero.`, {
        code: "zdr_unavailable",
        param: "Service-ZDR",
        details: {
          requested: x.privacy,
          considered: [{ plugin: id, reason: "route_plugin", ...told(policy) }],
          alternatives: [],
        },
      });
  }
}

/** Fields that ask to be kept or to be found again, whoever documents them. */
const LASTING = [
  "store",
  "background",
  "deferred",
  "conversation",
  "conversation_id",
  "previous_response_id",
  "thread",
  "thread_id",
  "container",
  "cachedContent",
  "cached_content",
];
/** Features that are called otherwise than the field that asks for them. */
const FIELDS: { readonly [feature: string]: string } = {
  file: "file_id",
  vector_store: "tools",
  extended: "prompt_cache_retention",
};

/** On the body, before anybody is looked for: nothing under privacy asks to be kept. */
export function keepsNothing(x: Visit, features: readonly Feature[], body: Body): void {
  if (x.op === "relay") conflict(x.path, "What was kept cannot be asked for under Service-ZDR.");
  for (const feature of features) {
    if (feature.startsWith("state.")) conflict(fieldOf(feature));
    if (feature.startsWith("cache.") && x.privacy === "strict")
      conflict(
        fieldOf(feature),
        "A prompt cache keeps what is sent, which Service-ZDR: strict rules out. Leave it out.",
      );
  }
  lasting(body);
}

function lasting(body: { readonly [field: string]: unknown }): void {
  for (const field of LASTING)
    if (![undefined, null, false, ""].includes(body[field] as never)) conflict(field);
}

const fieldOf = (feature: Feature): string => {
  const [kind, name = ""] = feature.split(".", 2);
  if (kind === "hosted") return "tools";
  return FIELDS[name] ?? (kind === "cache" ? "cache_control" : name);
};

const conflict = (
  param: string,
  message = `${param} keeps what Service-ZDR says must not be kept. Leave it out.`,
): never => fail("invalid", message, { code: "zdr_feature_conflict", param });

/** What was asked for that this policy says is kept; undefined when there is nothing. */
export function keptBy(seat: Seat, features: readonly Feature[]): Feature | undefined {
  return features.find((f) => lasts(f, seat.policy.stateful));
}

export const paramOf = fieldOf;

/**
 * Before every call: what holds at this moment for the one who is about to hear of it. A policy that a plugin, an
 * earlier call or the routing brought along is not asked.
 */
export function promise(call: Attempt): void {
  const x = call.exchange;
  if (x.privacy === "off") {
    x["~"].promised = receiptOf(call, call.policy);
    return;
  }
  const policy = policyOf(call.seat["~"], call.info, Date.now(), x.features);
  if (!satisfies(x.privacy, policy) || x["~"].gen.rests.distrusted(call.seat))
    fail("privacy", `${call.id} does not satisfy Service-ZDR: ${x.privacy}.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  x["~"].promised = receiptOf(call, policy);
}

/** Of the request as it will leave: what was promised is in it, and nothing of it asks to be kept, whoever wrote it there. */
export function keptPromise(call: Attempt, out: Departure): void {
  if (call.exchange.privacy === "off") return;
  for (const control of call.policy.controls ?? [])
    if (control.protocol === undefined || control.protocol === call.protocol) sent(control, out);
  const body = out.whole();
  if (!body) return;
  lasting(body);
  const server = call.seat["~"].endpoint.protocol?.server;
  const features = server?.survey(body).features ?? [];
  const kept = features.find((f) => lasts(f, call.policy.stateful));
  if (kept) conflict(fieldOf(kept));
}

function sent({ set, add, headers }: Control, out: Departure): void {
  const missing = (what: string) =>
    fail("privacy", `${what} is not sent as Service-ZDR needs it: another middleware changed it.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  for (const [field, value] of Object.entries(set ?? {}))
    if (!holds(out.get(field) as Json, value as Json)) missing(field);
  for (const [field, more] of Object.entries(add ?? {})) {
    const list = out.get(field);
    if (!Array.isArray(list) || !more.every((one) => list.includes(one as never))) missing(field);
  }
  for (const [name, value] of Object.entries(headers ?? {}))
    if (out.headers[name] !== value) missing(name);
}

/** Everything that was to be set stands there; an object may hold more. */
function holds(there: Json | undefined, wanted: Json): boolean {
  if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted))
    return JSON.stringify(there) === JSON.stringify(wanted);
  return (
    typeof there === "object" &&
    there !== null &&
    Object.entries(wanted).every(([key, value]) =>
      holds((there as { [key: string]: Json })[key], value as Json),
    )
  );
}

/** On every answer and every error: what held, and what the last one who was asked does with it. */
export function receipts(x: Visit): { readonly [name: string]: string } {
  const { tightened, req, promised } = x["~"];
  const asked = !tightened && req.headers["service-zdr"] !== undefined;
  return {
    "service-zdr": asked || x.privacy !== "off" ? "enforced" : "not-requested",
    "service-zdr-policy": promised ?? NOBODY,
  };
}

/** Nobody but the gateway has seen it. */
export const NOBODY = "none";

const written = new WeakMap<EffectivePolicy, string>();

/** "retention=zero;basis=declared;verified=2026-11-20": also what the ledger's row says. */
export function factsOf(policy: EffectivePolicy): string {
  let text = written.get(policy);
  if (text === undefined) {
    text = `retention=${sayRetention(policy)};basis=${policy.basis};verified=${policy.verifiedAt ?? "unknown"}`;
    written.set(policy, text);
  }
  return text;
}

const receiptOf = (call: Attempt, policy: EffectivePolicy): string =>
  `${call.provider}/${call.protocol ?? "native"};${factsOf(policy)}`;

const sayRetention = ({ retention }: EffectivePolicy): string =>
  retention.kind === "days" ? `days:${retention.days}` : retention.kind;

/** For whoever is refused. */
export const told = (policy: EffectivePolicy) => ({
  retention: sayRetention(policy),
  trains: policy.trains,
  because: [...policy.because],
});
