// Requests that the gateway sent to clients with a session, and running requests that such clients
// can cancel. A response can arrive at another process of the gateway.
import { randomUUID } from "node:crypto";
import type { Context, JsonObject } from "tollgate/plugin";
import type { ClientReply } from "./client-reply.ts";
import { isObject, RPC_ERRORS, type RpcId, type RpcResponse } from "./json-rpc.ts";
import { ServerError } from "./tool-server.ts";

/** Time that a client has to answer a request, in milliseconds. */
const ANSWER_MS = 10 * 60_000;
const MAX_OPEN = 10_000;

type Delivery = {
  readonly session: string;
  readonly response?: RpcResponse;
  readonly canceled?: RpcId;
};

interface OpenRequest {
  readonly session: string;
  readonly settle: (response: RpcResponse) => void;
}

export class ClientRequests {
  readonly #open: Map<string, OpenRequest>;
  readonly #running: Map<string, ClientReply>;
  readonly #askPeers: (delivery: Delivery) => Promise<true | undefined>;

  constructor(ctx: Context) {
    this.#open = ctx.shared("open requests", () => new Map<string, OpenRequest>());
    this.#running = ctx.shared("running requests", () => new Map<string, ClientReply>());
    this.#askPeers = ctx.createPeerQuery("client message", (delivery: Delivery) =>
      this.#deliver(delivery),
    );
  }

  /** Sends a request to a client, and resolves with its result. */
  ask(
    session: string,
    reply: ClientReply,
    { method, params }: { readonly method: string; readonly params: JsonObject },
  ): Promise<JsonObject> {
    if (!reply.canStream || this.#open.size >= MAX_OPEN)
      return Promise.reject(
        new ServerError("The client cannot receive requests.", {
          code: RPC_ERRORS.methodNotFound,
          progress: "unknown",
        }),
      );
    const id = `tollgate-${randomUUID()}`;
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    const fail = (message: string, code: number = RPC_ERRORS.internal) =>
      reject(new ServerError(message, { code, progress: "unknown" }));
    const onAbort = () => fail("The client canceled the request.");
    const timer = setTimeout(() => fail("The client did not answer in time."), ANSWER_MS);
    this.#open.set(id, {
      session,
      settle: ({ result, error }) => {
        if (isObject(result)) resolve(result);
        else fail(String(error?.message ?? "The client answered without a result."), error?.code);
      },
    });
    reply.signal.addEventListener("abort", onAbort, { once: true });
    reply.request(id, method, params);
    return promise.finally(() => {
      clearTimeout(timer);
      reply.signal.removeEventListener("abort", onAbort);
      this.#open.delete(id);
    });
  }

  /** Registers a running request until the returned function is called. */
  run(session: string, id: RpcId, reply: ClientReply): () => void {
    const key = JSON.stringify([session, id]);
    if (this.#running.size < MAX_OPEN) this.#running.set(key, reply);
    return () => void (this.#running.get(key) === reply && this.#running.delete(key));
  }

  /** Delivers a response or a cancellation of a client. */
  async deliver(delivery: Delivery): Promise<void> {
    if (!this.#deliver(delivery)) await this.#askPeers(delivery);
  }

  #deliver({ session, response, canceled }: Delivery): true | undefined {
    if (response) {
      const open = this.#open.get(String(response.id));
      // Another session cannot answer the request.
      if (open?.session !== session) return undefined;
      open.settle(response);
      return true;
    }
    const reply = this.#running.get(JSON.stringify([session, canceled]));
    reply?.cancel();
    return reply && true;
  }
}
