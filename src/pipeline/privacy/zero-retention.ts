// Service-ZDR, as the walk keeps it: what may not be asked, which providers may hear of it, and what the answer says about that.
// The zdr middleware decides what holds for a request. No middleware can loosen it afterwards.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { effectivePolicy, isStateful, satisfies } from "../../catalog/data-policy.ts";
import { fail } from "../../model/error.ts";
import type { PolicyControl, EffectivePolicy, Feature } from "../../model/facts.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { References } from "../../plugin/references.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import {
  mergeAllowlist,
  parseAllowances,
  CACHE_HINTS,
  referencedFeatures,
  findDisallowedField,
} from "../../protocols/references/index.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { effectivePolicyOf } from "./candidate-policy.ts";

/** On the head: a wish that this gateway cannot grant is refused, never ignored. */
export function assertPrivacySupported(x: HostExchange): void {
  const state = x["~"];
  if (!state.isPrivacyDecided && state.req.headers["service-zdr"] !== undefined)
    fail("invalid", "Service-ZDR cannot be honoured here: the zdr middleware is not mounted.", {
      code: "invalid_service_zdr",
      param: "Service-ZDR",
    });
  if (x.privacy === "off") return;
  if (!state.isPrivacyDecided)
    fail("privacy", "This key asks for a data policy, and the zdr middleware is not mounted.", {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  for (const { id, sends, isPolicyTrusted } of state.frontend.hookChain.contentSenders) {
    if (sends === "nowhere") continue;
    const policy = effectivePolicy({
      provider: sends,
      protocol: null,
      trusted: isPolicyTrusted,
      now: wallClock(),
    });
    if (!satisfies(x.privacy, policy))
      fail("privacy", `${id} sends content to a place whose data policy is not known to be zero.`, {
        code: "zdr_unavailable",
        param: "Service-ZDR",
        details: {
          requested: x.privacy,
          considered: [{ plugin: id, reason: "route_plugin", ...policyDetails(policy) }],
          alternatives: [],
        },
      });
  }
}

/** On the body, before candidates are looked for: nothing under privacy asks to be kept. */
export function rejectRetention(
  x: HostExchange,
  { features, references = [] }: RequestFacts,
): void {
  if (x.actionType === "relay")
    throwZdrConflict(x.path, "What was kept cannot be asked for under Service-ZDR.");
  rejectStateReferences(references);
  for (const feature of features) {
    if (feature.startsWith("state.")) throwZdrConflict(paramOfFeature(feature, references));
    if (feature.startsWith("cache.") && x.privacy === "strict")
      rejectPromptCache(paramOfFeature(feature, references));
  }
}

/** Refuses a body that names something that was kept, or asks for something to be kept. */
function rejectStateReferences(named: References): void {
  for (const { type, field, path } of named)
    if (type === "state") throwZdrConflict(field, `${path}${RETAINS_DATA}`);
}

const rejectPromptCache = (field: string): never =>
  throwZdrConflict(
    field,
    "A prompt cache keeps what is sent, which Service-ZDR: strict rules out. Leave it out.",
  );

/** The field in which it is asked for; of what the tables do not know, the feature's own name. */
export function paramOfFeature(feature: Feature, named: References): string {
  for (const one of named)
    if ((one.type === "hosted" || one.type === "cache") && one.feature === feature)
      return one.type === "cache" ? one.path.slice(one.path.lastIndexOf(".") + 1) : one.field;
  const [kind, name = ""] = feature.split(".", 2);
  return kind === "hosted" ? "tools" : kind === "cache" ? "cache_control" : name;
}

const RETAINS_DATA = " keeps what Service-ZDR says must not be kept, or names it. Leave it out.";

const throwZdrConflict = (param: string, message = `${param}${RETAINS_DATA}`): never =>
  fail("invalid", message, { code: "zdr_feature_conflict", param });

/**
 * What of a request is there for this candidate to keep, as far as it is known before it is written. A tool that is lost on the
 * way there keeps nothing; what does leave is looked at when it does.
 */
export const featuresReaching = (
  candidate: HostCandidate,
  features: readonly Feature[],
): readonly Feature[] =>
  candidate.mode === "passthrough" || candidate.protocol === null
    ? features
    : features.filter((f) => !f.startsWith("hosted."));

/** What was asked for that this policy says is kept; undefined when there is nothing. */
export function findRetainedFeature(
  candidate: HostCandidate,
  features: readonly Feature[],
): Feature | undefined {
  return featuresReaching(candidate, features).find((f) =>
    isStateful(f, candidate.policy.stateful),
  );
}

/**
 * Before every call: what holds at this moment for the provider that is about to hear of it. A policy that a plugin,
 * an earlier call or the routing brought along is not asked.
 */
export function pinPolicy(call: HostCall): void {
  const x = call.exchange;
  if (x.privacy === "off") {
    setZdrReceipt(call, call.policy);
    return;
  }
  const policy = effectivePolicyOf(
    call.candidate["~"],
    call.info,
    wallClock(),
    featuresReaching(call.candidate, x.features),
  );
  if (!satisfies(x.privacy, policy) || x["~"].gen.targetHealth.isDistrusted(call.candidate))
    fail("privacy", `${call.id} does not satisfy Service-ZDR: ${x.privacy}.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  setZdrReceipt(call, policy);
}

/** The receipt of a hedge becomes the request's when its call answers. */
function setZdrReceipt(call: HostCall, policy: EffectivePolicy): void {
  call.zdrReceipt = formatReceipt(call, policy);
  if (!call.isHedge) call.exchange["~"].zdrReceipt = call.zdrReceipt;
}

/** Of the request as it will leave: what was promised is in it, and nothing of it asks to be kept, the client's words and the plugins' alike. */
export function verifyPolicy(call: HostCall, out: OutgoingRequest): void {
  const { privacy } = call.exchange;
  if (privacy === "off") return;
  for (const control of call.policy.controls ?? [])
    if (control.protocol === undefined || control.protocol === call.protocol)
      assertControlSent(control, out);
  const body = out.toBody();
  if (!body) return;
  const named = out.references();
  rejectStateReferences(named);
  const { protocol } = call.candidate["~"].endpoint;
  const features = new Set([
    ...referencedFeatures(named),
    ...(protocol?.server?.analyze(body).features ?? []),
  ]);
  for (const feature of features) {
    // Where it would be lost on the way, another candidate may still serve it.
    const field = paramOfFeature(feature, named);
    if (isStateful(feature, call.policy.stateful))
      fail("unsupported", `${field}${RETAINS_DATA}`, {
        code: "zdr_feature_conflict",
        param: field,
      });
    if (privacy === "strict" && feature.startsWith("cache.")) rejectPromptCache(field);
  }
  if (privacy === "strict")
    for (const hint of CACHE_HINTS) if (body[hint] != null) rejectPromptCache(hint);
  rejectUnreviewedFields(call, body, protocol);
}

/** A field that was not reviewed may ask for anything: it does not leave, unless the operator says that it may. */
export function rejectUnreviewedFields(
  call: HostCall,
  body: Body,
  protocol: Protocol | null | undefined,
): void {
  const { provider } = call.candidate["~"];
  const controls = call.policy.controls ?? [];
  const allowed = parseAllowances([
    ...provider.zdrFields,
    ...controls.flatMap((control) => [
      ...leafPaths(control.set ?? {}),
      ...Object.keys(control.add ?? {}),
    ]),
  ]);
  const found = findDisallowedField(
    body,
    mergeAllowlist(protocol?.zdrAllowedFields ?? []),
    allowed,
  );
  if (!found) return;
  const { path, pattern } = found;
  fail(
    "unsupported",
    `${path} has not been reviewed for ${call.provider}/${call.protocol ?? "native"}: what becomes of it there is not known, ` +
      `and under Service-ZDR nothing leaves of which that is so. Leave it out; or the operator allows it, in gateway.yaml ` +
      `under providers.${call.provider}: zdr_allowed_fields: [${JSON.stringify(pattern)}].`,
    { code: "zdr_unknown_field", param: path },
  );
}

/** Places of the values in what a policy itself has set. */
const leafPaths = (of: JsonObject, place = ""): string[] =>
  Object.entries(of).flatMap(([key, value]) => {
    const here = place === "" ? key : `${place}.${key}`;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? leafPaths(value as JsonObject, here)
      : [here];
  });

function assertControlSent({ set, add, headers }: PolicyControl, out: OutgoingRequest): void {
  const missing = (what: string) =>
    fail("privacy", `${what} is not sent as Service-ZDR needs it: another middleware changed it.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  for (const [field, value] of Object.entries(set ?? {}))
    if (!containsValue(out.get(field) as Json, value as Json)) missing(field);
  for (const [field, more] of Object.entries(add ?? {})) {
    const list = out.get(field);
    if (!Array.isArray(list) || !more.every((one) => list.includes(one as never))) missing(field);
  }
  for (const [name, value] of Object.entries(headers ?? {}))
    if (out.headers[name] !== value) missing(name);
}

/** Everything that was to be set stands there; an object may hold more. */
function containsValue(there: Json | undefined, wanted: Json): boolean {
  if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted))
    return JSON.stringify(there) === JSON.stringify(wanted);
  return (
    typeof there === "object" &&
    there !== null &&
    Object.entries(wanted).every(([key, value]) =>
      containsValue((there as { [key: string]: Json })[key], value as Json),
    )
  );
}

/** On every answer and every error: what held, and what the provider that was asked last does with it. */
export function createZdrHeaders(
  x: HostExchange,
  receipt = x["~"].zdrReceipt,
): { readonly [name: string]: string } {
  const { isPrivacyDecided, req } = x["~"];
  const isUnsupportedRequest = !isPrivacyDecided && req.headers["service-zdr"] !== undefined;
  return {
    "service-zdr": isUnsupportedRequest || x.privacy !== "off" ? "enforced" : "not-requested",
    "service-zdr-policy": receipt ?? NO_PROVIDER,
  };
}

/** No provider has seen it. */
export const NO_PROVIDER = "none";

const formattedPolicies = new WeakMap<EffectivePolicy, string>();

/** "retention=zero;basis=declared;verified=2026-11-20": also what the ledger's row says. */
export function formatPolicy(policy: EffectivePolicy): string {
  let text = formattedPolicies.get(policy);
  if (text === undefined) {
    text = `retention=${formatRetention(policy)};basis=${policy.basis};verified=${policy.verifiedAt ?? "unknown"}`;
    formattedPolicies.set(policy, text);
  }
  return text;
}

const formatReceipt = (call: HostCall, policy: EffectivePolicy): string =>
  `${call.provider}/${call.protocol ?? "native"};${formatPolicy(policy)}`;

const formatRetention = ({ retention }: EffectivePolicy): string =>
  retention.kind === "days" ? `days:${retention.days}` : retention.kind;

/** For a client that is refused. */
export const policyDetails = (policy: EffectivePolicy) => ({
  retention: formatRetention(policy),
  trains: policy.trains,
  because: [...policy.reasons],
});
