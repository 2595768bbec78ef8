// A request that a plugin makes on behalf of another request. A subrequest uses the same pipeline
// and the same key, and has its own ledger rows. Only its connection is simulated.
import type { IncomingMessage, ServerResponse } from "node:http";
import { fail, createFault, type Fault } from "../model/error.ts";
import type { Json } from "../model/values.ts";
import type { Subrequest, SubrequestOptions, SubrequestResult } from "../plugin/context.ts";
import { assertFrontendAllowed } from "./accounts/accounts.ts";
import { assertPrivacySupported } from "./privacy/zero-retention.ts";
import { markAsHookFailure } from "./hooks/hook-guard.ts";
import type { HostExchange, SubrequestOrigin } from "./exchange/exchange.ts";
import type { MountedRoute } from "./exchange/mounted.ts";
import { withoutSecretHeaders } from "./exchange/secret-headers.ts";
import { createVirtualRequest, VirtualResponse } from "./exchange/virtual-connection.ts";
import { EventResponse } from "./sockets/event-response.ts";

/** Maximum depth of nested subrequests, such as a judge that calls a judge. */
export const MAX_SUBREQUEST_DEPTH = 4;

/**
 * The simulated connection of a subrequest. Its body is already present, and its response is
 * buffered or passed on event by event.
 */
export interface SubrequestConnection {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /**
   * Resolves when the response ends: to its bytes, or to undefined if it was truncated. The bytes of
   * a stream are "null". Rejects with the error of `onEvent`.
   */
  readonly responseBody: Promise<Buffer | undefined>;
}

/** Header with the client's timeout in seconds. A subrequest gets the remaining time. */
const CLIENT_TIMEOUT_HEADER = "x-stainless-timeout";
const STREAMED = Buffer.from("null");

export function createSubrequestConnection(
  origin: SubrequestOrigin,
  { path, body, headers: given }: Subrequest,
  onEvent: SubrequestOptions["onEvent"],
): SubrequestConnection {
  const { req: parentReq, startedAt } = origin.parentRequest.state.connection;
  const raw = Buffer.from(JSON.stringify(body));
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(given ?? {}))
    if (value !== undefined) headers[name.toLowerCase()] = value;
  const clientTimeoutSeconds = Number(parentReq.headers[CLIENT_TIMEOUT_HEADER]);
  if (clientTimeoutSeconds > 0)
    headers[CLIENT_TIMEOUT_HEADER] = String(
      Math.max(1, clientTimeoutSeconds - (performance.now() - startedAt) / 1_000),
    );
  if (parentReq.headers["x-tollgate-strict"] === "true") headers["x-tollgate-strict"] = "true";
  const req = createVirtualRequest({
    path,
    headers: withoutSecretHeaders(headers),
    body: raw,
    socket: parentReq.socket,
  });
  if (onEvent) return { req, ...createStreamedResponse(onEvent) };
  const { response, body: responseBody } = createBufferedResponse();
  return { req, res: response.asServerResponse, responseBody };
}

/** Creates a response whose events are passed on one after the other. */
function createStreamedResponse(
  onEvent: NonNullable<SubrequestOptions["onEvent"]>,
): Pick<SubrequestConnection, "res" | "responseBody"> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | undefined>();
  // The error is also the result of the subrequest, which is read later.
  promise.catch(() => undefined);
  let passing: Promise<void> | undefined;
  let whole: Buffer | undefined;
  const response = new EventResponse({
    onEvent(data) {
      const passed = (passing ?? Promise.resolve()).then(() => onEvent(data));
      passing = passed.catch((error: unknown) => {
        reject(error);
        response.destroy();
      });
    },
    onWhole: ({ body }) => void (whole = Buffer.from(body)),
    onTruncated: () => resolve(undefined),
    whenWritable: () => passing,
  });
  response.once("finish", () => {
    const end = () => resolve(whole ?? STREAMED);
    if (passing) void passing.then(end);
    else end();
  });
  return { res: response.asServerResponse, responseBody: promise };
}

/** A response that is buffered. */
export interface BufferedResponse {
  readonly response: BufferedServerResponse;
  /**
   * Resolves when the response ends: to its bytes, or to undefined if it was truncated. The response
   * does not refer to it.
   */
  readonly body: Promise<Buffer | undefined>;
}

export function createBufferedResponse(): BufferedResponse {
  const response = new BufferedServerResponse();
  const body = new Promise<Buffer | undefined>((resolve) => {
    response.once("finish", () => resolve(response.takeBytes()));
    response.once("close", () => resolve(undefined));
  });
  return { response, body };
}

/** Buffers what is written to it. */
export class BufferedServerResponse extends VirtualResponse {
  #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#chunks = [];
    done(error);
  }

  /** Returns everything that was written, once. */
  takeBytes(): Buffer {
    return Buffer.concat(this.#chunks.splice(0));
  }
}

/** Returns the nesting depth of a request. A client's own request has depth 0. */
export const subrequestDepth = (x: HostExchange): number => {
  const origin = x.subrequestOrigin;
  return origin ? 1 + subrequestDepth(origin.parentRequest) : 0;
};

/** Returns the route of a subrequest, without the hooks of the plugins that make it. */
export const excludePluginHooks = (
  mounted: MountedRoute,
  pluginIds: readonly string[],
): MountedRoute => ({
  ...mounted,
  frontend: { ...mounted.frontend, hooks: mounted.frontend.hooks.without(pluginIds) },
});

/**
 * Sets the parent's identity and privacy level, so that a subrequest has no more permissions than
 * its parent. Its ledger rows name the parent request.
 */
export function inheritFromParent(
  x: HostExchange,
  { parentRequest, pluginIds }: SubrequestOrigin,
): void {
  const { identity, privacy } = parentRequest;
  if (!identity)
    return fail("internal", "A subrequest needs a client, and this request is not identified yet.");
  x.identify(identity);
  if (privacy !== "off") x.requirePrivacy(privacy);
  assertFrontendAllowed(x.identity!, x.frontend);
  assertPrivacySupported(x);
  x.addLabel("parent", parentRequest.id);
  x.addLabel("requested_by_plugin", pluginIds.at(-1)!);
}

const CANCELED = { kind: "canceled", message: "The subrequest was canceled." } as const;

/**
 * Returns the result of a subrequest. If the subrequest was rejected and the plugin does not catch
 * the error, the plugin failed. The client's request itself was not rejected.
 */
export async function readSubrequestResult(
  x: HostExchange,
  responseBody: SubrequestConnection["responseBody"],
): Promise<SubrequestResult> {
  const bytes = await responseBody;
  const { outcome, billing } = x.state;
  if (outcome.fault || !bytes) {
    const fault: Fault = outcome.fault ?? CANCELED;
    const { kind, message, code, param, retryAfterMs } = fault;
    const details = { ...fault.details, subrequest: x.id };
    throw markAsHookFailure(createFault(kind, message, { code, param, retryAfterMs, details }));
  }
  return { id: x.id, body: JSON.parse(bytes.toString()) as Json, calls: billing.records };
}
