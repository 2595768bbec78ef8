// A request that a plugin makes on behalf of another one: the same walk, the same key, its own rows. Only its connection is none.
import { Readable, Writable } from "node:stream";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fail, fault } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { AskedAnswer } from "../plugin/asked.ts";
import { mayAsk } from "./accounts.ts";
import type { Asker } from "./asker.ts";
import { keepPrivate } from "./candidates/privacy.ts";
import { lent } from "./hook-failures.ts";
import type { Chain, Hook, Stage } from "./hooks.ts";
import type { HostExchange } from "./exchange.ts";
import type { MountedFrontend, MountedRoute } from "./mounted.ts";

/** A judge that asks a judge, and no further. */
export const MOST_DEEP = 4;

/** The connection of such a request: its body is there, and its answer stays. */
export interface AskedConnection {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** When the answer has ended: its bytes; undefined where it was cut. */
  readonly answer: Promise<Buffer | undefined>;
}

/** How long a client says that it waits: of that, what is left. */
const WAITS = "x-stainless-timeout";

export function connection(
  of: Asker<HostExchange>,
  path: string,
  body: JsonObject,
): AskedConnection {
  const { req: from, started } = of.parent["~"];
  const raw = Buffer.from(JSON.stringify(body));
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(raw.length),
  };
  const waits = Number(from.headers[WAITS]);
  if (waits > 0)
    headers[WAITS] = String(Math.max(1, waits - (performance.now() - started) / 1_000));
  if (from.headers["x-tollgate-strict"] === "true") headers["x-tollgate-strict"] = "true";
  const req = Object.assign(Readable.from([raw], { objectMode: false }), {
    method: "POST",
    url: path,
    headers,
    rawHeaders: Object.entries(headers).flat(),
    httpVersion: "1.1",
    complete: true,
    socket: from.socket,
  });
  const res = new AskedResponse();
  const answer = new Promise<Buffer | undefined>((resolve) => {
    res.once("finish", () => resolve(Buffer.concat(res.parts)));
    res.once("close", () => resolve(undefined));
  });
  return {
    req: req as unknown as IncomingMessage,
    res: res as unknown as ServerResponse,
    answer,
  };
}

/** As much of a response as the walk writes to. */
class AskedResponse extends Writable {
  readonly parts: Buffer[] = [];
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
    this.parts.push(Buffer.from(chunk));
    done();
  }
}

/** How deep a request is: 0, a client's own. */
export const depthOf = (x: HostExchange): number => {
  const { asker } = x["~"];
  return asker ? 1 + depthOf(asker.parent) : 0;
};

/** The route at which it is made, without the hooks of those that ask. */
export function withoutAskers(mounted: MountedRoute, askers: readonly string[]): MountedRoute {
  return {
    ...mounted,
    frontend: { ...mounted.frontend, chain: chainFor(mounted.frontend, askers) },
  };
}

const chains = new WeakMap<Chain, Map<string, Chain>>();

/** Made once for each set of askers. */
function chainFor({ chain }: MountedFrontend, askers: readonly string[]): Chain {
  let known = chains.get(chain);
  if (!known) chains.set(chain, (known = new Map()));
  const name = askers.join(" ");
  let made = known.get(name);
  if (!made) known.set(name, (made = without(chain, new Set(askers))));
  return made;
}

function without(chain: Chain, askers: ReadonlySet<string>): Chain {
  const stays = ({ id }: { readonly id: string }) => !askers.has(id);
  const parts = Object.entries(chain).map(([part, list]) => [
    part,
    part === "stages"
      ? (list as readonly Stage[]).filter(({ event, watch }) => stays((event ?? watch)!))
      : (list as readonly Hook<"admit">[]).filter(stays),
  ]);
  return Object.fromEntries(parts) as Chain;
}

/** It has the identity of its parent, and may no more than that; its rows name the request that it belongs to. */
export function inherit(x: HostExchange, { parent, askers }: Asker<HostExchange>): void {
  const { identity, privacy } = parent;
  if (!identity)
    return fail("internal", "A request is made for a client, and this one is not identified yet.");
  x.identify(identity);
  if (privacy !== "off") x.tighten(privacy);
  mayAsk(x.identity!, x.frontend);
  keepPrivate(x);
  x.label("parent", parent.id);
  x.label("asked_by", askers.at(-1)!);
}

/** What became of it. A refusal is a failure of the plugin that lets it through, and no word on the client's request. */
export async function answered(
  x: HostExchange,
  answer: AskedConnection["answer"],
): Promise<AskedAnswer> {
  const bytes = await answer;
  const { fault: failed, calls } = x["~"];
  if (failed || !bytes) {
    const { kind, message, code } = failed ?? { kind: "canceled", message: "It was given up." };
    throw lent(fault(kind, message, { code, details: { asked: x.id } }));
  }
  return { id: x.id, body: JSON.parse(bytes.toString()) as Json, calls };
}
