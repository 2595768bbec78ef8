// Service-ZDR, as the walk keeps it: what may not be asked, which providers may hear of it, and what the answer says about that.
// The zdr middleware decides what holds for a request. No middleware can loosen it afterwards.
import { wallClock } from "../../lib/wall-clock.ts";
import { effectivePolicy, lasts, satisfies } from "../../catalogue/policy.ts";
import { fail } from "../../model/error.ts";
import type { PolicyControl, EffectivePolicy, Feature } from "../../model/facts.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { Named } from "../../plugin/look.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Survey } from "../../plugin/survey.ts";
import { all, allowing, CACHE_HINTS, featuresOf, stranger } from "../../protocols/look/index.ts";
import type { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { HostCandidate } from "../mounted.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { policyOf } from "./policy.ts";

/** On the head: a wish that this gateway cannot grant is refused, never ignored. */
export function keepPrivate(x: HostExchange): void {
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
    const policy = effectivePolicy({ provider: sends, protocol: null, trusted, now: wallClock() });
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

/** On the body, before candidates are looked for: nothing under privacy asks to be kept. */
export function keepsNothing(x: HostExchange, { features, named = [] }: Survey): void {
  if (x.op === "relay") conflict(x.path, "What was kept cannot be asked for under Service-ZDR.");
  lasting(named);
  for (const feature of features) {
    if (feature.startsWith("state.")) conflict(paramOf(feature, named));
    if (feature.startsWith("cache.") && x.privacy === "strict") remembered(paramOf(feature, named));
  }
}

/** Refuses a body that names something that was kept, or asks for something to be kept. */
function lasting(named: Named): void {
  for (const { kind, field, path } of named)
    if (kind === "state") conflict(field, `${path}${KEEPS}`);
}

const remembered = (field: string): never =>
  conflict(
    field,
    "A prompt cache keeps what is sent, which Service-ZDR: strict rules out. Leave it out.",
  );

/** The field in which it is asked for; of what the tables do not know, the feature's own name. */
export function paramOf(feature: Feature, named: Named): string {
  for (const one of named)
    if ((one.kind === "hosted" || one.kind === "cache") && one.feature === feature)
      return one.kind === "cache" ? one.path.slice(one.path.lastIndexOf(".") + 1) : one.field;
  const [kind, name = ""] = feature.split(".", 2);
  return kind === "hosted" ? "tools" : kind === "cache" ? "cache_control" : name;
}

const KEEPS = " keeps what Service-ZDR says must not be kept, or names it. Leave it out.";

const conflict = (param: string, message = `${param}${KEEPS}`): never =>
  fail("invalid", message, { code: "zdr_feature_conflict", param });

/**
 * What of a request is there for this candidate to keep, as far as it is known before it is written. A tool that is lost on the
 * way there keeps nothing; what does leave is looked at when it does.
 */
export const reaching = (
  candidate: HostCandidate,
  features: readonly Feature[],
): readonly Feature[] =>
  candidate.lane === "verbatim" || candidate.protocol === null
    ? features
    : features.filter((f) => !f.startsWith("hosted."));

/** What was asked for that this policy says is kept; undefined when there is nothing. */
export function keptBy(
  candidate: HostCandidate,
  features: readonly Feature[],
): Feature | undefined {
  return reaching(candidate, features).find((f) => lasts(f, candidate.policy.stateful));
}

/**
 * Before every call: what holds at this moment for the provider that is about to hear of it. A policy that a plugin,
 * an earlier call or the routing brought along is not asked.
 */
export function promise(call: HostCall): void {
  const x = call.exchange;
  if (x.privacy === "off") {
    noteReceipt(call, call.policy);
    return;
  }
  const policy = policyOf(
    call.candidate["~"],
    call.info,
    wallClock(),
    reaching(call.candidate, x.features),
  );
  if (!satisfies(x.privacy, policy) || x["~"].gen.rests.distrusted(call.candidate))
    fail("privacy", `${call.id} does not satisfy Service-ZDR: ${x.privacy}.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  noteReceipt(call, policy);
}

/** The receipt of a hedge becomes the request's when its call answers. */
function noteReceipt(call: HostCall, policy: EffectivePolicy): void {
  call.promised = receiptOf(call, policy);
  if (!call.hedge) call.exchange["~"].promised = call.promised;
}

/** Of the request as it will leave: what was promised is in it, and nothing of it asks to be kept, the client's words and the plugins' alike. */
export function keptPromise(call: HostCall, out: OutgoingRequest): void {
  const { privacy } = call.exchange;
  if (privacy === "off") return;
  for (const control of call.policy.controls ?? [])
    if (control.protocol === undefined || control.protocol === call.protocol) sent(control, out);
  const body = out.whole();
  if (!body) return;
  const named = out.named();
  lasting(named);
  const { protocol } = call.candidate["~"].endpoint;
  const features = new Set([
    ...featuresOf(named),
    ...(protocol?.server?.survey(body).features ?? []),
  ]);
  for (const feature of features) {
    // Where it would be lost on the way, another candidate may still serve it.
    const field = paramOf(feature, named);
    if (lasts(feature, call.policy.stateful))
      fail("unsupported", `${field}${KEEPS}`, { code: "zdr_feature_conflict", param: field });
    if (privacy === "strict" && feature.startsWith("cache.")) remembered(field);
  }
  if (privacy === "strict")
    for (const hint of CACHE_HINTS) if (body[hint] != null) remembered(hint);
  reviewed(call, body, protocol);
}

/** A field that was not reviewed may ask for anything: it does not leave, unless the operator says that it may. */
export function reviewed(call: HostCall, body: Body, protocol: Protocol | null | undefined): void {
  const { provider } = call.candidate["~"];
  const controls = call.policy.controls ?? [];
  const allowed = allowing([
    ...provider.zdrFields,
    ...controls.flatMap((control) => [
      ...leaves(control.set ?? {}),
      ...Object.keys(control.add ?? {}),
    ]),
  ]);
  const found = stranger(body, all(protocol?.reviewed ?? []), allowed);
  if (!found) return;
  const { path, place } = found;
  fail(
    "unsupported",
    `${path} has not been reviewed for ${call.provider}/${call.protocol ?? "native"}: what becomes of it there is not known, ` +
      `and under Service-ZDR nothing leaves of which that is so. Leave it out; or the operator allows it, in gateway.yaml ` +
      `under providers.${call.provider}: zdr_fields: [${JSON.stringify(place)}].`,
    { code: "zdr_unknown_field", param: path },
  );
}

/** Places of the values in what a policy itself has set. */
const leaves = (of: JsonObject, place = ""): string[] =>
  Object.entries(of).flatMap(([key, value]) => {
    const here = place === "" ? key : `${place}.${key}`;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? leaves(value as JsonObject, here)
      : [here];
  });

function sent({ set, add, headers }: PolicyControl, out: OutgoingRequest): void {
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

/** On every answer and every error: what held, and what the provider that was asked last does with it. */
export function receipts(
  x: HostExchange,
  promised = x["~"].promised,
): { readonly [name: string]: string } {
  const { tightened, req } = x["~"];
  const asked = !tightened && req.headers["service-zdr"] !== undefined;
  return {
    "service-zdr": asked || x.privacy !== "off" ? "enforced" : "not-requested",
    "service-zdr-policy": promised ?? NO_PROVIDER,
  };
}

/** No provider has seen it. */
export const NO_PROVIDER = "none";

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

const receiptOf = (call: HostCall, policy: EffectivePolicy): string =>
  `${call.provider}/${call.protocol ?? "native"};${factsOf(policy)}`;

const sayRetention = ({ retention }: EffectivePolicy): string =>
  retention.kind === "days" ? `days:${retention.days}` : retention.kind;

/** For a client that is refused. */
export const told = (policy: EffectivePolicy) => ({
  retention: sayRetention(policy),
  trains: policy.trains,
  because: [...policy.because],
});
