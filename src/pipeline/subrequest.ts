// A request that a plugin makes on behalf of another one: the same walk, the same key, its own rows. Only its connection is none.
import { Readable, Writable } from "node:stream";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fail, createFault } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { SubrequestResult } from "../plugin/subrequest.ts";
import { assertFrontendAllowed } from "./accounts/accounts.ts";
import type { SubrequestOrigin } from "./exchange/subrequest-origin.ts";
import { assertPrivacySupported } from "./privacy/zero-retention.ts";
import { markAsHookFailure } from "./hooks/hook-guard.ts";
import type { HookChain, CompiledHook, EventFilter } from "./hooks/hook-chain.ts";
import type { HostExchange } from "./exchange/exchange.ts";
import type { MountedFrontend, MountedRoute } from "./exchange/mounted.ts";

/** A judge that asks a judge, and no further. */
export const MAX_SUBREQUEST_DEPTH = 4;

/** The connection of such a request: its body is there, and its answer stays. */
export interface SubrequestConnection {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** When the answer has ended: its bytes; undefined where it was cut. */
  readonly responseBody: Promise<Buffer | undefined>;
}

/** How long a client says that it waits: of that, what is left. */
const CLIENT_TIMEOUT_HEADER = "x-stainless-timeout";

export function createSubrequestConnection(
  origin: SubrequestOrigin<HostExchange>,
  path: string,
  body: JsonObject,
): SubrequestConnection {
  const { req: parentReq, startedAt } = origin.parentRequest["~"];
  const raw = Buffer.from(JSON.stringify(body));
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(raw.length),
  };
  const clientTimeoutSeconds = Number(parentReq.headers[CLIENT_TIMEOUT_HEADER]);
  if (clientTimeoutSeconds > 0)
    headers[CLIENT_TIMEOUT_HEADER] = String(
      Math.max(1, clientTimeoutSeconds - (performance.now() - startedAt) / 1_000),
    );
  if (parentReq.headers["x-tollgate-strict"] === "true") headers["x-tollgate-strict"] = "true";
  const req = Object.assign(Readable.from([raw], { objectMode: false }), {
    method: "POST",
    url: path,
    headers,
    rawHeaders: Object.entries(headers).flat(),
    httpVersion: "1.1",
    complete: true,
    socket: parentReq.socket,
  });
  const res = new BufferedServerResponse();
  const answer = new Promise<Buffer | undefined>((resolve) => {
    res.once("finish", () => resolve(Buffer.concat(res.chunks)));
    res.once("close", () => resolve(undefined));
  });
  return {
    req: req as unknown as IncomingMessage,
    res: res as unknown as ServerResponse,
    responseBody: answer,
  };
}

/** As much of a response as the walk writes to. */
class BufferedServerResponse extends Writable {
  readonly chunks: Buffer[] = [];
  statusCode = 200;
  headersSent = false;

  writeHead(status: number): this {
    this.statusCode = status;
    this.headersSent = true;
    return this;
  }
  flushHeaders(): void {}
  writeContinue(): void {}
  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.chunks.push(Buffer.from(chunk));
    done();
  }
}

/** How deep a request is: 0, a client's own. */
export const subrequestDepth = (x: HostExchange): number => {
  const { subrequestOrigin } = x["~"];
  return subrequestOrigin ? 1 + subrequestDepth(subrequestOrigin.parentRequest) : 0;
};

/** The route at which it is made, without the hooks of those that ask. */
export function excludePluginHooks(
  mounted: MountedRoute,
  pluginIds: readonly string[],
): MountedRoute {
  return {
    ...mounted,
    frontend: { ...mounted.frontend, hookChain: filteredChainFor(mounted.frontend, pluginIds) },
  };
}

const filteredChains = new WeakMap<HookChain, Map<string, HookChain>>();

/** Made once for each set of askers. */
function filteredChainFor({ hookChain }: MountedFrontend, pluginIds: readonly string[]): HookChain {
  let cached = filteredChains.get(hookChain);
  if (!cached) filteredChains.set(hookChain, (cached = new Map()));
  const name = pluginIds.join(" ");
  let filtered = cached.get(name);
  if (!filtered) cached.set(name, (filtered = filterHooks(hookChain, new Set(pluginIds))));
  return filtered;
}

function filterHooks(chain: HookChain, pluginIds: ReadonlySet<string>): HookChain {
  const isKept = ({ id }: { readonly id: string }) => !pluginIds.has(id);
  const parts = Object.entries(chain).map(([part, list]) => [
    part,
    part === "stages"
      ? (list as readonly EventFilter[]).filter(({ event, watch }) => isKept((event ?? watch)!))
      : (list as readonly CompiledHook<"admit">[]).filter(isKept),
  ]);
  return Object.fromEntries(parts) as HookChain;
}

/** It has the identity of its parent, and may no more than that; its rows name the request that it belongs to. */
export function inheritFromParent(
  x: HostExchange,
  { parentRequest, pluginIds }: SubrequestOrigin<HostExchange>,
): void {
  const { identity, privacy } = parentRequest;
  if (!identity)
    return fail("internal", "A request is made for a client, and this one is not identified yet.");
  x.identify(identity);
  if (privacy !== "off") x.requirePrivacy(privacy);
  assertFrontendAllowed(x.identity!, x.frontend);
  assertPrivacySupported(x);
  x.addLabel("parent", parentRequest.id);
  x.addLabel("requested_by_plugin", pluginIds.at(-1)!);
}

/** What became of it. A refusal is a failure of the plugin that lets it through, and no word on the client's request. */
export async function readSubrequestResult(
  x: HostExchange,
  responseBody: SubrequestConnection["responseBody"],
): Promise<SubrequestResult> {
  const bytes = await responseBody;
  const { fault: requestFault, callRecords } = x["~"];
  if (requestFault || !bytes) {
    const { kind, message, code } = requestFault ?? {
      kind: "canceled",
      message: "It was given up.",
    };
    throw markAsHookFailure(createFault(kind, message, { code, details: { subrequest: x.id } }));
  }
  return { id: x.id, body: JSON.parse(bytes.toString()) as Json, calls: callRecords };
}
