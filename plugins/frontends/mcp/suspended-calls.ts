// Requests of stateless clients to servers with sessions that ask the client for input. The request
// to the server stays open while the client collects the input, and continues with its next request.
import { randomUUID } from "node:crypto";
import type { Context, JsonObject } from "tollgate/plugin";
import type { ClientReply } from "./client-reply.ts";
import { RPC_ERRORS } from "./json-rpc.ts";
import { ServerError } from "./tool-server.ts";

/** Time that a client has to provide the input, in milliseconds. */
export const INPUT_MS = 5 * 60_000;
const MAX_SUSPENDED = 1_000;
const SWEEP_MS = 5_000;

/** A request of the server for input. */
interface InputRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (problem: Error) => void;
}

/** Next event of a call: its result, or a request for input. */
export type CallStep = { readonly result: JsonObject } | { readonly input: InputRequest };

type NotificationReceiver = (method: string, params: JsonObject) => void;

/** The client's current request, which waits for the next event of a call. */
interface Waiter {
  readonly reply: Pick<ClientReply, "setCall">;
  readonly resolve: (step: CallStep) => void;
  readonly reject: (problem: unknown) => void;
}

/** A call that can ask for input several times. */
export class SuspendableCall {
  #id: string | undefined;
  readonly #controller = new AbortController();
  readonly #inputs: InputRequest[] = [];
  /** Result of the server, or the error in its place. */
  #ended: { readonly result: JsonObject } | { readonly problem: unknown } | undefined;
  #waiter: Waiter | undefined;
  expiresAt = 0;
  /** Belongs to the client's current request. */
  #receiver: NotificationReceiver | undefined;

  /** Most calls are never suspended, so they need no ID. */
  get id(): string {
    return (this.#id ??= randomUUID());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(run: (call: SuspendableCall) => Promise<JsonObject>): void {
    run(this).then(
      (result) => {
        this.#ended = { result };
        this.#advance();
      },
      (problem: unknown) => {
        this.#ended = { problem };
        this.#advance();
      },
    );
  }

  abort(): void {
    this.#controller.abort();
  }

  /** Sets the receiver of notifications. */
  setReceiver(receiver: NotificationReceiver): void {
    this.#receiver = receiver;
  }

  notify(method: string, params: JsonObject): void {
    this.#receiver?.(method, params);
  }

  ask(method: string, params: JsonObject): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      this.#inputs.push({ method, params, resolve, reject });
      this.#advance();
    });
  }

  /** Request for input that the client has received. */
  get pendingInput(): InputRequest | undefined {
    return this.#inputs[0];
  }

  /** Answers the request for input that the client has received. */
  answer(result: JsonObject | undefined): void {
    const input = this.#inputs.shift();
    if (result) input?.resolve(result);
    else
      input?.reject(
        new ServerError("The client did not provide the input.", {
          code: RPC_ERRORS.internal,
          progress: "unknown",
        }),
      );
  }

  /** Resolves with the next event. A client that cancels its request aborts the call. */
  next(reply: Pick<ClientReply, "setCall">): Promise<CallStep> {
    return new Promise((resolve, reject) => {
      this.#waiter = { reply, resolve, reject };
      reply.setCall(this);
      this.#advance();
    });
  }

  /** Passes the next event to the client's request, if one waits. */
  #advance(): void {
    const waiter = this.#waiter;
    const [input] = this.#inputs;
    if (!waiter || (!input && !this.#ended)) return;
    this.#waiter = undefined;
    waiter.reply.setCall(undefined);
    if (input) waiter.resolve({ input });
    else if ("problem" in this.#ended!) waiter.reject(this.#ended.problem);
    else waiter.resolve(this.#ended!);
  }
}

export class SuspendedCalls {
  readonly #calls: Map<string, SuspendableCall>;

  constructor(ctx: Context) {
    this.#calls = ctx.shared("suspended calls", () => new Map<string, SuspendableCall>());
    ctx.runEvery(SWEEP_MS, () => {
      const now = Date.now();
      for (const call of this.#calls.values()) if (call.expiresAt <= now) this.#end(call);
    });
  }

  /** Keeps a call until its input arrives. The oldest call is ended if there are too many. */
  suspend(call: SuspendableCall): void {
    call.expiresAt = Date.now() + INPUT_MS;
    this.#calls.set(call.id, call);
    const [oldest] = this.#calls.values();
    if (this.#calls.size > MAX_SUSPENDED) this.#end(oldest!);
  }

  /** Returns a suspended call, once. */
  take(id: string): SuspendableCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #end(call: SuspendableCall): void {
    this.#calls.delete(call.id);
    while (call.pendingInput) call.answer(undefined);
    call.abort();
  }
}
