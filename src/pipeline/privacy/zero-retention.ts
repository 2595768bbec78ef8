// Enforces Service-ZDR in the pipeline: which requests are rejected, which providers may receive a
// request, and which headers the response carries. The zdr middleware decides the privacy level of
// a request. Later middleware cannot loosen it.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { effectivePolicy, isStateful, satisfies } from "../../catalog/data-policy.ts";
import { fail } from "../../model/error.ts";
import type { PolicyControl, EffectivePolicy, Feature } from "../../model/facts.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { References, RequestFacts } from "../../plugin/references.ts";
import type { Protocol } from "../../plugin/protocol.ts";
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

/**
 * Throws if the gateway cannot grant the requested privacy. Runs when the headers are read. Such a
 * request is always rejected, and the header is never ignored.
 */
export function assertPrivacySupported(x: HostExchange): void {
  const { frontend, connection, admission } = x.state;
  if (!admission.isPrivacyDecided && connection.req.headers["service-zdr"] !== undefined)
    fail("invalid", "Service-ZDR is not supported here: no privacy middleware is enabled.", {
      code: "invalid_service_zdr",
      param: "Service-ZDR",
    });
  if (x.privacy === "off") return;
  if (!admission.isPrivacyDecided)
    fail("privacy", "This key requires a data policy, but no privacy middleware is enabled.", {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  for (const { id, sends, isPolicyTrusted } of frontend.hooks.contentSenders) {
    if (sends === "nowhere") continue;
    const policy = effectivePolicy({
      provider: sends,
      protocol: null,
      trusted: isPolicyTrusted,
      now: wallClock(),
    });
    if (!satisfies(x.privacy, policy))
      fail(
        "privacy",
        `${id} sends content to a destination that is not known to have zero data retention.`,
        {
          code: "zdr_unavailable",
          param: "Service-ZDR",
          details: {
            requested: x.privacy,
            considered: [{ plugin: id, reason: "route_plugin", ...policyDetails(policy) }],
            alternatives: [],
          },
        },
      );
  }
}

/**
 * Throws if a private request asks for retention. Runs on the body, before candidates are selected.
 */
export function rejectRetention(
  x: HostExchange,
  { features, references = [] }: RequestFacts,
): void {
  if (x.actionType === "relay")
    throwZdrConflict(x.path, "Stored objects cannot be requested with Service-ZDR.");
  rejectStateReferences(references);
  for (const feature of features) {
    if (feature.startsWith("state.")) throwZdrConflict(paramOfFeature(feature, references));
    if (feature.startsWith("cache.") && x.privacy === "strict")
      rejectPromptCache(paramOfFeature(feature, references));
  }
}

/** Throws if a body refers to stored state or requests that state is stored. */
function rejectStateReferences(named: References): void {
  for (const { type, field, path } of named)
    if (type === "state") throwZdrConflict(field, `${path}${RETAINS_DATA}`);
}

const rejectPromptCache = (field: string): never =>
  throwZdrConflict(
    field,
    "A prompt cache stores request content, which Service-ZDR: strict does not " +
      "allow. Omit it.",
  );

/**
 * Returns the field that asks for the feature. If the reference tables do not know the field,
 * returns the feature's own name.
 */
export function paramOfFeature(feature: Feature, named: References): string {
  for (const one of named)
    if ((one.type === "hosted" || one.type === "cache") && one.feature === feature)
      return one.type === "cache" ? one.path.slice(one.path.lastIndexOf(".") + 1) : one.field;
  const [kind, name = ""] = feature.split(".", 2);
  return kind === "hosted" ? "tools" : kind === "cache" ? "cache_control" : name;
}

const RETAINS_DATA =
  " stores data or refers to stored data, which Service-ZDR does not allow. Omit it.";

const throwZdrConflict = (param: string, message = `${param}${RETAINS_DATA}`): never =>
  fail("invalid", message, { code: "zdr_feature_conflict", param });

/**
 * Returns the features that may reach this candidate, as far as that is known before encoding. A
 * hosted tool that the translation drops stores nothing. The encoded request is checked when it is
 * sent.
 */
export const featuresReaching = (
  candidate: HostCandidate,
  features: readonly Feature[],
): readonly Feature[] =>
  candidate.mode === "passthrough" || candidate.protocol === null
    ? features
    : features.filter((f) => !f.startsWith("hosted."));

/**
 * Returns the first requested feature for which this candidate's policy declares retention, or
 * undefined.
 */
export function findRetainedFeature(
  candidate: HostCandidate,
  features: readonly Feature[],
): Feature | undefined {
  return featuresReaching(candidate, features).find((f) =>
    isStateful(f, candidate.policy.stateful),
  );
}

/**
 * Checks the policy that applies to the provider at this moment. Runs before every call. Policies
 * that were computed earlier by a plugin, an earlier call, or routing are not trusted.
 */
export function pinPolicy(call: HostCall): void {
  const x = call.exchange;
  if (x.privacy === "off") {
    setZdrReceipt(call, call.policy);
    return;
  }
  const policy = effectivePolicyOf(
    call.candidate.mounted,
    call.info,
    wallClock(),
    featuresReaching(call.candidate, x.features),
  );
  if (!satisfies(x.privacy, policy) || x.state.gen.targetHealth.isDistrusted(call.candidate))
    fail("privacy", `${call.id} does not satisfy Service-ZDR: ${x.privacy}.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  setZdrReceipt(call, policy);
}

/**
 * Sets the call's receipt. A hedge's receipt becomes the receipt of the request only if the hedge
 * is used for the response.
 */
function setZdrReceipt(call: HostCall, policy: EffectivePolicy): void {
  call.zdrReceipt = formatReceipt(call, policy);
  if (!call.isHedge) setRequestReceipt(call.exchange, call.zdrReceipt);
}

/**
 * Sets the receipt of a request. It is also the receipt of a parent that the request answers: the
 * provider receives the content of both.
 */
export function setRequestReceipt(x: HostExchange, receipt: string): void {
  x.state.calls.zdrReceipt = receipt;
  const parent = x.subrequestOrigin?.parentRequest;
  if (parent?.state.body.received?.answer) setRequestReceipt(parent, receipt);
}

/**
 * Verifies that the encoded request contains the policy's controls and does not request retention.
 * The check covers fields of the client and of plugins.
 */
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
  const { protocol } = call.candidate.mounted.endpoint;
  const features = new Set([
    ...referencedFeatures(named),
    ...(protocol?.server?.analyze(body).features ?? []),
  ]);
  for (const feature of features) {
    // The error is `unsupported` because another candidate, whose translation drops the field, may
    // still serve the request.
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

/**
 * Throws if the body has a field that was not reviewed. Such a field could request anything, so it
 * is not sent unless the operator allows it.
 */
export function rejectUnreviewedFields(
  call: HostCall,
  body: Body,
  protocol: Protocol | null | undefined,
): void {
  const { provider } = call.candidate.mounted;
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
    `${path} is not on the list of ZDR-allowed fields for ${call.provider}/${call.protocol ?? "native"}, so it cannot be sent with Service-ZDR. ` +
      "Omit it, or have the operator allow it in gateway.yaml " +
      `under providers.${call.provider}: zdr_allowed_fields: [${JSON.stringify(pattern)}].`,
    { code: "zdr_unknown_field", param: path },
  );
}

/** Returns the paths of all values that a policy itself sets. */
const leafPaths = (of: JsonObject, place = ""): string[] =>
  Object.entries(of).flatMap(([key, value]) => {
    const here = place === "" ? key : `${place}.${key}`;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? leafPaths(value as JsonObject, here)
      : [here];
  });

function assertControlSent({ set, add, headers }: PolicyControl, out: OutgoingRequest): void {
  const missing = (what: string) =>
    fail(
      "privacy",
      `${what} cannot be sent as Service-ZDR requires: another middleware changed it.`,
      {
        code: "zdr_unavailable",
        param: "Service-ZDR",
      },
    );
  for (const [field, value] of Object.entries(set ?? {}))
    if (!containsValue(out.get(field) as Json, value as Json)) missing(field);
  for (const [field, more] of Object.entries(add ?? {})) {
    const list = out.get(field);
    if (!Array.isArray(list) || !more.every((one) => list.includes(one as never))) missing(field);
  }
  for (const [name, value] of Object.entries(headers ?? {}))
    if (out.headers[name] !== value) missing(name);
}

/**
 * Whether a value contains everything that the policy sets. An object may have additional members.
 */
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

/**
 * Returns the privacy headers for every response and error: whether privacy was enforced, and the
 * policy of the provider that was called last.
 */
export function createZdrHeaders(
  x: HostExchange,
  receipt = x.state.calls.zdrReceipt,
): { readonly [name: string]: string } {
  const { admission, connection } = x.state;
  const isUnsupportedRequest =
    !admission.isPrivacyDecided && connection.req.headers["service-zdr"] !== undefined;
  return {
    "service-zdr": isUnsupportedRequest || x.privacy !== "off" ? "enforced" : "not-requested",
    "service-zdr-policy": receipt ?? NO_PROVIDER,
  };
}

/** Value of `service-zdr-policy` if no provider received the request. */
export const NO_PROVIDER = "none";

const formattedPolicies = new WeakMap<EffectivePolicy, string>();

/**
 * Formats a policy, such as "retention=zero;basis=declared;verified=2026-11-20". The ledger row
 * contains the same text.
 */
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

/** Returns the details of a policy for a client whose request was rejected. */
export const policyDetails = (policy: EffectivePolicy) => ({
  retention: formatRetention(policy),
  trains: policy.trains,
  because: [...policy.reasons],
});
