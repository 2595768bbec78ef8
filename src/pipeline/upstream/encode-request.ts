import { isPromise } from "../../lib/is-promise.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { setOwnProperty } from "../../lib/set-own-property.ts";
import { fail } from "../../model/error.ts";
import type { Body, HeadersIn, HeadersOut } from "../../model/values.ts";
import type { Path, Protocol } from "../../plugin/protocol.ts";
import type { ProtocolEndpoint } from "../../plugin/provider.ts";
import { ACCOUNT_FIELDS, ROUTING_FIELDS } from "../../protocols/references/index.ts";
import { visibleLimits } from "../accounts/accounts.ts";
import { conversationIdOf } from "../exchange/conversation-id.ts";
import type { HostCall } from "../exchange/call.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import { SECRET_HEADERS } from "../exchange/secret-headers.ts";
import { requireSyncResult } from "../hooks/hook-guard.ts";
import { multipartContentType } from "../body/multipart-parser.ts";
import { checkBeforeEncoding, checkBeforeSending } from "./outgoing-checks.ts";
import { OutgoingRequest } from "./outgoing-request.ts";
import { createZdrHeaders } from "../privacy/zero-retention.ts";
import { createTraceHeaders } from "../exchange/trace.ts";

/**
 * Encodes the request for an endpoint: the client's bytes with edits, or the body that the codec
 * produced.
 */
export function encodeRequest(
  call: HostCall,
  protocol: Protocol,
  endpoint: ProtocolEndpoint,
): OutgoingRequest {
  const x = call.exchange;
  const { body, frontend, connection } = x.state;
  const received = body.received!;
  const { client } = protocol;
  const isPassthrough = call.mode === "passthrough";
  checkBeforeEncoding(call);
  const bodiless = x.method === "GET" || x.method === "DELETE";
  const path = resolvePath(
    findOperationPath(call.action, endpoint, protocol) ??
      fail("unsupported", `${call.id} does not support ${call.action}.`, {
        code: "no_such_operation",
      }),
    call,
  );
  const out = new OutgoingRequest({
    method: x.actionType === "relay" ? x.method : "POST",
    path,
    body: bodiless ? null : isPassthrough ? received.originalBody : translateBody(call, protocol),
    raw: isPassthrough ? received.raw : undefined,
    spans: isPassthrough ? received.spans : undefined,
    form: isPassthrough ? received.multipart : undefined,
    named: isPassthrough ? received.facts.references : undefined,
  });
  out.setHeader("accept-encoding", "identity");
  const form = isPassthrough ? received.multipart : undefined;
  if (!bodiless)
    out.setHeader("content-type", form ? multipartContentType(form.boundary) : "application/json");
  for (const name in endpoint.headers) out.setHeader(name, endpoint.headers[name]);
  if (isPassthrough) {
    forwardRequestHeaders(protocol.headers?.request, connection.req.headers, out);
    for (const field in received.edits) out.set(field, received.edits[field]);
    if (out.get("model") !== undefined) out.set("model", call.model);
  }
  dropAccountFields(call, out);
  requireSyncResult(client?.prepare?.(out, call));
  requireSyncResult(endpoint.prepare?.(out, call));
  if (call.omitsAccountBound) requireSyncResult(client?.accountBound?.strip(out, call));
  if (endpoint.sessionAffinity) setConversationAffinity(call, out, endpoint.sessionAffinity);
  frontend.hooks.prepare(out, call);
  const trace = createTraceHeaders(call);
  for (const name in trace) out.setHeader(name, trace[name]);
  if (x.privacy !== "off") filterHeadersForZdr(call, protocol, endpoint, out);
  checkBeforeSending(call, out);
  return out;
}

/**
 * Under Service-ZDR, reduces client headers to the values that the protocol's review allows,
 * regardless of whether the host or the provider's plugin added them. All other headers are created
 * by the gateway. If a value of a reviewed header is dropped, a warning is sent. IDs that the
 * client chose are dropped silently.
 */
function filterHeadersForZdr(
  call: HostCall,
  { headers }: Protocol,
  endpoint: ProtocolEndpoint,
  out: OutgoingRequest,
): void {
  const { req } = call.exchange.state.connection;
  const reviewed = headers?.zdrAllowed ?? {};
  for (const [name, value] of Object.entries(out.headers)) {
    const isListed = Object.hasOwn(reviewed, name);
    if (value === undefined || HOST_HEADERS.has(name) || value === endpoint.headers?.[name])
      continue;
    if (!isListed && req.headers[name] === undefined) continue;
    if (call.policy.controls?.some((control) => control.headers?.[name] === value)) continue;
    const tokens = value.split(",").map((word) => word.trim());
    const allowed = isListed ? tokens.filter((word) => reviewed[name]!.includes(word)) : [];
    if (allowed.length === tokens.length) continue;
    if (isListed) call.reportLoss(name, "dropped", "zdr_unreviewed_header");
    out.setHeader(name, allowed.length > 0 ? allowed.join(",") : endpoint.headers?.[name]);
  }
}

/** Headers that the host sets, whatever the client sent. */
const HOST_HEADERS: ReadonlySet<string> = new Set(["accept-encoding", "content-type"]);

/**
 * Sets the conversation ID for session affinity. The ID is sent only if the route is sticky,
 * because the provider can see which requests belong together. The ID contains no other
 * information.
 */
function setConversationAffinity(
  { exchange: x }: HostCall,
  out: OutgoingRequest,
  { field, header }: NonNullable<ProtocolEndpoint["sessionAffinity"]>,
): void {
  const { routing, frontend } = x.state;
  if (
    routing.resolution?.strategy !== "sticky" ||
    x.privacy !== "off" ||
    x.actionType !== "generate"
  )
    return;
  const conversation = conversationIdOf(x, frontend.server);
  if (conversation === undefined) return;
  if (field !== undefined && out.get(field) === undefined) out.set(field, conversation);
  if (header !== undefined && out.headers[header] === undefined)
    out.setHeader(header, conversation);
}

/** Removes fields in which a client could choose the route or the account. */
function dropAccountFields(call: HostCall, out: OutgoingRequest): void {
  for (const field of out.presentFields(FORBIDDEN_BODY_FIELDS)) {
    const wasSet = out.get(field) !== null;
    out.remove(field);
    if (wasSet && !ROUTING_FIELDS.includes(field))
      call.reportLoss(field, "dropped", "account_field");
  }
}

const FORBIDDEN_BODY_FIELDS: ReadonlySet<string> = new Set([...ROUTING_FIELDS, ...ACCOUNT_FIELDS]);

/**
 * Encodes the body. Fields that no codec knows are forwarded, unless the model is known to reject
 * them. Fields that the target's codec knows are taken only from the decoded request. A field
 * copied from another protocol's body would not have been checked.
 */
function translateBody(call: HostCall, protocol: Protocol): Body {
  const x = call.exchange;
  const request = x.state.body.rewritten ?? x.request;
  const encoded: unknown = protocol.client!.encodeRequest(request, call);
  // Spreading any other value would produce a body without members. That body would be sent and
  // billed.
  if (!isBody(encoded)) throw new TypeError(`${protocol.id}: request returned an invalid body`);
  const body: Record<string, Body[string]> = { ...encoded };
  for (const [field, value] of Object.entries(request.rest)) {
    if (Object.hasOwn(body, field) || ROUTING_FIELDS.includes(field)) continue;
    if (protocol.id !== x.protocol && protocol.client!.knowsField?.(field))
      call.reportLoss(field, "dropped", "foreign_field");
    else if (call.info.rejectedFields?.includes(field))
      call.reportLoss(field, "dropped", "refused_by_model");
    else setOwnProperty(body, field, value);
  }
  return body;
}

const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isPromise(value);

const resolvePath = (path: Path, call: HostCall): string =>
  typeof path === "string" ? path : path(call);

/** Forwards the headers that a protocol allows. A trailing `*` matches by prefix. */
function forwardHeaders(
  list: readonly string[] | undefined,
  headers: HeadersIn,
  each: (name: string, value: string) => void,
): void {
  for (const pattern of list ?? []) {
    if (!pattern.endsWith("*")) {
      const value = headers[pattern];
      if (value !== undefined) each(pattern, Array.isArray(value) ? value.join(", ") : value);
      continue;
    }
    const prefix = pattern.slice(0, -1);
    for (const name in headers) {
      const value = headers[name];
      if (name.startsWith(prefix) && value !== undefined)
        each(name, Array.isArray(value) ? value.join(", ") : value);
    }
  }
}

/**
 * Forwards the client's headers that the protocol allows. A prefix in the list does not allow
 * credentials, or headers in which a client could choose the operator's account. The bounds on the
 * headers of a request limit their number and size.
 */
function forwardRequestHeaders(
  list: readonly string[] | undefined,
  headers: HeadersIn,
  out: OutgoingRequest,
): void {
  forwardHeaders(list, headers, (name, value) => {
    if (SECRET_HEADERS.has(name)) return;
    if (!list!.includes(name) && (ACCOUNT_HEADER.test(name) || CREDENTIAL_HEADER.test(name)))
      return;
    out.setHeader(name, value);
  });
}

const CREDENTIAL_HEADER = /auth|api-?key|secret|token$|credential|admin/;

/**
 * Headers that reveal the operator's account. They are never forwarded, whatever a protocol's list
 * contains.
 */
const ACCOUNT_HEADER =
  /rate-?limit|organi[sz]ation|project|workspace|account|tenant|cookie|credit|balance|quota/;

/** Headers with the limits of the account that pays the call. */
const LIMIT_HEADERS = ["anthropic-ratelimit-*", "x-ratelimit-*", "x-codex-*"];

/**
 * Forwards the provider's response headers that the protocol's list allows. `isPaidByClient`: the
 * account with the provider is the client's, so its limits are forwarded as well.
 */
export function forwardResponseHeaders(
  list: readonly string[] | undefined,
  headers: HeadersIn,
  each: (name: string, value: string) => void,
  isPaidByClient: boolean,
): void {
  forwardHeaders(list, headers, (name, value) => {
    if (!ACCOUNT_HEADER.test(name)) each(name, value);
  });
  if (isPaidByClient) forwardHeaders(LIMIT_HEADERS, headers, each);
}

/** Creates the response headers that are known before the first byte of a response. */
export function createResponseHeaders(call: HostCall, upstream: HeadersIn): HeadersOut {
  const x = call.exchange;
  const { frontend, gen, admission, billing } = x.state;
  const limits = visibleLimits(billing.limitStates, admission.account);
  const head: Record<string, string | undefined> = {};
  call.responseHeaders = head;
  const own = frontend.server?.encodeHeaders?.({ id: x.id, limits, now: wallClock() });
  for (const name in own) head[name] = own[name];
  head["x-tollgate-generation"] = String(gen.number);
  head["x-tollgate-warnings"] = call.warningsHeader;
  const receipt = createZdrHeaders(x, call.zdrReceipt);
  for (const name in receipt) head[name] = receipt[name];
  const protocol = call.candidate.mounted.endpoint.protocol;
  if (call.mode === "passthrough" && protocol)
    forwardResponseHeaders(
      protocol.headers?.response,
      upstream,
      (name, value) => {
        head[name] ??= gen.mask(value);
      },
      isPaidByClient(call.candidate),
    );
  return head;
}

/**
 * Returns the path of an operation. `name` is the name that a route uses for the operation. A path
 * of the endpoint takes precedence over a path of its protocol. Returns undefined if the endpoint does not have the operation.
 * The name may come from the client.
 */
export function findOperationPath(
  name: string,
  { paths, sockets }: Pick<ProtocolEndpoint, "paths" | "sockets">,
  protocol: Protocol,
): Path | undefined {
  if (paths && Object.hasOwn(paths, name)) return paths[name];
  const own = protocol.client?.paths;
  if (own && Object.hasOwn(own, name)) return own[name];
  return sockets && Object.hasOwn(sockets, name) ? sockets[name]?.path : undefined;
}
