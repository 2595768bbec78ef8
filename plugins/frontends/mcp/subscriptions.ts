// Streams of events: changes of lists and resources. A change of a list is reported to a
// client only if the entries that it may see have changed.
import { hash } from "node:crypto";
import type { Context, JsonObject, RouteResponse } from "tollgate/plugin";
import type { ClientReply, FinalMessage } from "./client-reply.ts";
import type { Client } from "./client.ts";
import { findResource, listPage, serversWith } from "./directory.ts";
import { isObject, type RpcId } from "./json-rpc.ts";
import type { MountedServer } from "./mounted-server.ts";
import { publicName } from "./public-names.ts";
import { META } from "./revisions.ts";
import type { ListKind, ServerEvent } from "./tool-server.ts";

/** Lists by the notification of their change. */
const CHANGED_LISTS: Readonly<Record<string, ListKind>> = {
  "notifications/tools/list_changed": "tools",
  "notifications/prompts/list_changed": "prompts",
  "notifications/resources/list_changed": "resources",
};
const RESOURCE_UPDATED = "notifications/resources/updated";
const MAX_URIS = 200;
/** Time before a stream that a server ended is opened again, in milliseconds. */
const RECONNECT_MS = 5_000;

/** Events that a client wants. */
export interface WantedEvents {
  readonly lists: ReadonlySet<ListKind>;
  /** Public URIs. */
  readonly resources: readonly string[];
}

/** Reads the filter of `subscriptions/listen`. */
export function readFilter(params: JsonObject): WantedEvents {
  const filter = isObject(params["notifications"]) ? params["notifications"] : {};
  const lists = new Set<ListKind>();
  if (filter["toolsListChanged"] === true) lists.add("tools");
  if (filter["promptsListChanged"] === true) lists.add("prompts");
  if (filter["resourcesListChanged"] === true) lists.add("resources");
  const uris = filter["resourceSubscriptions"];
  const resources = Array.isArray(uris)
    ? uris.filter((uri) => typeof uri === "string").slice(0, MAX_URIS)
    : [];
  return { lists, resources };
}

export class EventStream {
  readonly #ctx: Context;
  readonly #client: Client;
  readonly #reply: ClientReply;
  readonly #wanted: WantedEvents;
  /** ID of the subscription. Undefined for the stream of a session. */
  readonly #id: RpcId | undefined;
  /** Hashes of the lists as the client may see them. */
  readonly #seen = new Map<ListKind, string>();
  #end: (() => void) | undefined;

  constructor(
    ctx: Context,
    client: Client,
    reply: ClientReply,
    of: { readonly wanted: WantedEvents; readonly id: RpcId | undefined },
  ) {
    this.#ctx = ctx;
    this.#client = client;
    this.#reply = reply;
    this.#wanted = of.wanted;
    this.#id = of.id;
  }

  /**
   * Opens the stream. It ends when the client disconnects or the config is replaced. Throws if a
   * server of a resource does not have the privacy that the client requires.
   */
  open(): RouteResponse {
    for (const server of this.#resourcesByServer().keys()) server.assertRetention(this.#client.x);
    return this.#reply.stream(() => this.#run());
  }

  async #run(): Promise<FinalMessage | undefined> {
    const { signal } = this.#reply;
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    const end = () => this.#end?.();
    signal.addEventListener("abort", end, { once: true });
    this.#ctx.signal.addEventListener("abort", end, { once: true });
    try {
      for (const kind of this.#wanted.lists) this.#seen.set(kind, await this.#hashOf(kind));
      const resources = this.#resourcesByServer();
      const confirmed = await Promise.all(
        serversWith(this.#client.scope, "tools").map((server) => {
          const uris = resources.get(server) ?? [];
          return this.#listen(server, uris).then(
            () => uris,
            () => [],
          );
        }),
      );
      if (this.#id !== undefined) this.#acknowledge(confirmed.flat());
      if (!signal.aborted && !this.#ctx.signal.aborted) await ended;
      return this.#id === undefined || signal.aborted ? undefined : this.#finalMessage();
    } finally {
      signal.removeEventListener("abort", end);
      this.#ctx.signal.removeEventListener("abort", end);
      this.#reply.cancel();
    }
  }

  /** Resources that the client may read, with their public URIs. */
  #resourcesByServer(): Map<MountedServer, string[]> {
    const found = new Map<MountedServer, string[]>();
    for (const uri of this.#wanted.resources) {
      try {
        const { server } = findResource(this.#client.scope, uri);
        found.set(server, [...(found.get(server) ?? []), uri]);
      } catch {
        // The acknowledgment does not contain it.
      }
    }
    return found;
  }

  async #listen(server: MountedServer, publicUris: readonly string[]): Promise<void> {
    const { signal } = this.#reply;
    const { x, profile, scope } = this.#client;
    const lists = new Set(
      [...this.#wanted.lists].filter((kind) => serversWith(scope, kind).includes(server)),
    );
    if (!server.server.listen || (lists.size === 0 && publicUris.length === 0)) return;
    const resources = publicUris.map((uri) => findResource(scope, uri).uri);
    const again = () => {
      if (signal.aborted || this.#ctx.signal.aborted) return;
      setTimeout(() => {
        if (!signal.aborted) this.#listen(server, publicUris).catch(() => undefined);
      }, RECONNECT_MS).unref();
    };
    await server.withCaller(x, profile, signal, (caller) =>
      server.server.listen!({ lists, resources }, caller, {
        event: (event) => void this.#onEvent(server, event),
        end: again,
      }),
    );
  }

  async #onEvent(server: MountedServer, { method, params }: ServerEvent): Promise<void> {
    const kind = CHANGED_LISTS[method];
    if (kind) {
      server.invalidate(kind);
      if (kind === "resources") server.invalidate("resourceTemplates");
      if (!this.#wanted.lists.has(kind)) return;
      const now = await this.#hashOf(kind);
      if (this.#seen.get(kind) === now) return;
      this.#seen.set(kind, now);
      this.#notify(method, {});
    } else if (method === RESOURCE_UPDATED && typeof params["uri"] === "string") {
      const own = params["uri"];
      const { only } = this.#client.scope;
      const uri = only ? own : publicName(server.name, "resources", own);
      if (this.#wanted.resources.includes(uri)) this.#notify(method, { uri });
    }
  }

  async #hashOf(kind: ListKind): Promise<string> {
    const { x, scope } = this.#client;
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listPage(x, scope, kind, cursor).catch(() => undefined);
      if (!page) return "unavailable";
      pages.push(JSON.stringify(page.items));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return hash("sha256", pages.join("\n"));
  }

  #notify(method: string, params: JsonObject): void {
    const meta = this.#id === undefined ? {} : { _meta: { [META.subscriptionId]: this.#id } };
    this.#reply.notify(method, { ...params, ...meta });
  }

  #acknowledge(resources: readonly string[]): void {
    const { lists } = this.#wanted;
    this.#notify("notifications/subscriptions/acknowledged", {
      notifications: {
        ...(lists.has("tools") && { toolsListChanged: true }),
        ...(lists.has("prompts") && { promptsListChanged: true }),
        ...(lists.has("resources") && { resourcesListChanged: true }),
        ...(resources.length > 0 && { resourceSubscriptions: [...resources] }),
      },
    });
  }

  #finalMessage(): FinalMessage {
    const meta = { [META.subscriptionId]: this.#id! };
    const result = { resultType: "complete", _meta: meta };
    return { status: 200, body: { jsonrpc: "2.0", id: this.#id!, result } };
  }
}
