// Hooks that call an isolated plugin. Each hook is one call. Response events are sent in batches,
// and the forwarded events are returned.
import { fail } from "../model/error.ts";
import type { Body } from "../model/values.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Call, Candidate, RecordedResponse, UpstreamResponse } from "../plugin/call.ts";
import type { RequestHead, Exchange } from "../plugin/exchange.ts";
import type { AttemptResult, Exclusion, Hooks, RouteResult } from "../plugin/middleware.ts";
import type { Outcome } from "../plugin/outcome.ts";
import type { RpcOperation } from "../model/rpc-operation.ts";
import {
  type CallOptions,
  type HostHandlers,
  type PluginConnection,
  PluginFailure,
} from "./plugin-connection.ts";
import { frameReviver } from "./frames.ts";
import type { ConnectionSource, EventStreams } from "./event-streams.ts";
import type { KnownRequests } from "./known-requests.ts";
import {
  type IsolatableHook,
  serializeBody,
  serializeCall,
  serializeCandidate,
  serializeExchange,
} from "./serialization.ts";

export interface IsolatedPlugin extends ConnectionSource {
  readonly streams: EventStreams;
  readonly requests: KnownRequests<SentRequest>;
  /**
   * Whether the plugin confirms that it received the end of a request. Child processes confirm it.
   * A program on a socket does not have to.
   */
  readonly confirmsRequestEnd: boolean;
}

type HookExchange = RequestHead & Partial<Exchange>;
type Untrusted = Readonly<Record<string, unknown>>;

/** A request and the parts of it that were already sent. */
export interface SentRequest {
  readonly exchange: RequestHead;
  readonly connection: PluginConnection;
  isRequestSent: boolean;
}

const isMapping = (it: unknown): it is Untrusted =>
  typeof it === "object" && it !== null && !Array.isArray(it);

const isOperation = (it: unknown): it is RpcOperation =>
  isMapping(it) &&
  typeof it["system"] === "string" &&
  typeof it["method"] === "string" &&
  Object.values(it).every((each) => each == null || typeof each === "string");

/**
 * Applies the effects that a hook reported with its reply, in order. The effects are validated like
 * the effects of any hook.
 */
function applyEffects(x: HookExchange, raw: Untrusted): void {
  const list = raw["effects"] ?? [];
  if (!Array.isArray(list) || list.length > 200)
    throw new PluginFailure("The plugin's list of actions is invalid or too long.");
  for (const one of list as readonly unknown[]) {
    if (!Array.isArray(one)) throw new PluginFailure("The plugin's action is invalid.");
    const [what, a, b] = one as unknown[];
    const texts = typeof a === "string" && typeof b === "string";
    if (what === "addLabel" && texts) x.addLabel(a, b);
    else if (what === "setResponseHeader" && texts) x.setResponseHeader(a, b);
    else if (what === "requirePrivacy" && typeof a === "string") x.requirePrivacy(a as never);
    else if (what === "acquireSlot" && typeof a === "string" && typeof b === "number")
      x.acquireSlot(a, b);
    else if (what === "setRpcOperation" && isOperation(a)) x.setRpcOperation(a);
    else if (what === "identify" && isMapping(a) && typeof a["id"] === "string")
      x.identify(JSON.parse(JSON.stringify(a), frameReviver) as never);
    else throw new PluginFailure("The plugin's action is unknown.");
  }
}

/** Creates the hooks. `has`: the hooks that the plugin has declared. */
export function createIsolatedHooks(of: IsolatedPlugin, has: readonly IsolatableHook[]): Hooks {
  const asking = new HookCaller(of, of.confirmsRequestEnd && has.includes("watch"));
  const settles = has.includes("settle");
  const hooks: { [H in IsolatableHook]: NonNullable<Hooks[H]> } = {
    admit: (x, credential) => asking.admit(x, credential),
    edit: (x) => asking.edit(x),
    rewrite: (request, x) => asking.rewrite(request, x),
    inspect: (request, x) => asking.inspect(request, x),
    route: (list, x) => asking.route(list, x),
    attempt: (call, next) => asking.attempt(call, next),
    event: (call, next, stop) => of.streams.transform(of, call, next, stop, asking.exchangeParams),
    watch: (call, stop) => of.streams.observe(of, call, stop, asking.exchangeParams),
    settle: (x, outcome) => (settles ? asking.settle(x, outcome) : asking.endRequest(x)),
  };
  // Every plugin is notified of the end of a request, so that it can discard the request's state.
  const hookNames: readonly IsolatableHook[] = [...has, "settle"];
  return Object.fromEntries(hookNames.map((hook) => [hook, hooks[hook]]));
}

class HookCaller {
  readonly #plugin: IsolatedPlugin;
  readonly #isWatching: boolean;

  constructor(of: IsolatedPlugin, isWatching: boolean) {
    this.#plugin = of;
    this.#isWatching = isWatching;
  }

  /** Returns the parameters of a hook. Includes the request if it was not sent yet. */
  readonly exchangeParams = (connection: PluginConnection, x: HookExchange): object => {
    const one = this.#sentRequest(connection, x);
    const plain = serializeExchange(x);
    if (one.isRequestSent || !x.model || x.actionType === "relay") return { exchange: plain };
    one.isRequestSent = true;
    return { exchange: plain, request: x.request };
  };

  admit(x: RequestHead, credential: string | undefined): Promise<void> {
    const readBody = async () =>
      this.exchangeParams(await this.#plugin.connection(), await x.readBody());
    const given = (link: PluginConnection) => {
      this.#sentRequest(link, x);
      return { exchange: serializeExchange(x), credential };
    };
    return this.#call("admit", x, given, parseNothing, { read_body: readBody });
  }

  edit(x: Exchange): Promise<Body | undefined> {
    const given = (link: PluginConnection) => {
      // The edit may change the request, so it must be sent again.
      this.#sentRequest(link, x).isRequestSent = false;
      return { exchange: serializeExchange(x), body: serializeBody(x.body) };
    };
    return this.#call("edit", x, given, parseEdit);
  }

  rewrite(request: ModelRequest, x: Exchange): Promise<ModelRequest> {
    return this.#call("rewrite", x, this.#withRequest(request, x), (result) =>
      result["request"] === undefined
        ? request
        : (JSON.parse(JSON.stringify(result["request"]), frameReviver) as ModelRequest),
    );
  }

  inspect(request: ModelRequest, x: Exchange): Promise<void> {
    return this.#call("inspect", x, this.#withRequest(request, x), parseNothing);
  }

  route(list: readonly Candidate[], x: Exchange): Promise<RouteResult> {
    const candidates = list.map(serializeCandidate);
    const given = (link: PluginConnection) => ({ ...this.exchangeParams(link, x), candidates });
    return this.#call("route", x, given, (result) =>
      result["list"] === undefined ? list : parseRoute(result["list"], list),
    );
  }

  attempt(call: Call, next: () => Promise<UpstreamResponse>): Promise<AttemptResult> {
    let reply: UpstreamResponse | undefined;
    const x = call.exchange;
    const got = () => reply ?? fail("internal", "next() was not called.");
    const given = (link: PluginConnection) => ({
      ...this.exchangeParams(link, x),
      call: serializeCall(call),
    });
    return this.#call("attempt", x, given, (result) => parseAttempt(result, reply), {
      next: async () => {
        reply = await next();
        const { status, headers, limits } = reply;
        return { status, headers, limits };
      },
      record_response: async (max: unknown) => {
        const answer = await got().recordResponse(typeof max === "number" ? max : 0);
        return answer && { ...answer, body: answer.body.toString("base64") };
      },
      when_settled: () => got().whenSettled(),
    });
  }

  async settle(x: HookExchange, outcome: Outcome): Promise<void> {
    try {
      await this.#call(
        "settle",
        x,
        (now) => ({ ...this.exchangeParams(now, x), outcome }),
        parseNothing,
      );
    } finally {
      this.endRequest(x);
    }
  }

  /**
   * Notifies the plugin of the end of a request. An observing hook may still process the last
   * events and use the request. In that case, the entry is removed when the plugin confirms the
   * end.
   */
  endRequest({ id }: RequestHead): void {
    const { requests } = this.#plugin;
    const one = this.#isWatching ? requests.get(id) : requests.remove(id);
    one?.connection.notifyLazily("request_end", { exchange: id });
  }

  readonly #withRequest = (request: ModelRequest, x: Exchange) => (link: PluginConnection) => {
    this.#sentRequest(link, x).isRequestSent = true;
    return { exchange: serializeExchange(x), request };
  };

  #sentRequest(connection: PluginConnection, x: HookExchange): SentRequest {
    const there = this.#plugin.requests.get(x.id);
    if (there?.connection === connection) return there;
    const one = { exchange: x, connection, isRequestSent: false };
    this.#plugin.requests.set(x.id, one);
    return one;
  }

  #call<R>(
    hook: IsolatableHook,
    x: HookExchange,
    given: (link: PluginConnection) => object,
    made: (result: Untrusted) => R,
    answers?: HostHandlers,
  ): Promise<R> {
    const callHook = (link: PluginConnection) =>
      link.call(hook, given(link), new HookCall(hook, x, link, made, answers)) as Promise<R>;
    const link = this.#plugin.connection();
    return "then" in link ? link.then(callHook) : callHook(link);
  }
}

/** A class is used instead of closures, because each request creates an instance for each hook. */
class HookCall implements CallOptions {
  readonly #hook: IsolatableHook;
  readonly #exchange: HookExchange;
  readonly #connection: PluginConnection;
  readonly #parse: (result: Untrusted) => unknown;
  readonly handlers: HostHandlers | undefined;

  constructor(
    hook: IsolatableHook,
    x: HookExchange,
    connection: PluginConnection,
    made: (result: Untrusted) => unknown,
    answers: HostHandlers | undefined,
  ) {
    this.#hook = hook;
    this.#exchange = x;
    this.#connection = connection;
    this.#parse = made;
    this.handlers = answers;
  }

  /**
   * Notifies the plugin if the client cancels the request. Registering a signal costs as much as a
   * short hook, so only longer calls register one.
   */
  onSlow(): void {
    const { signal, id } = this.#exchange;
    const gone = () => this.#connection.notify("request_canceled", { exchange: id });
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  }

  parseReply(raw: unknown): unknown {
    if (!isMapping(raw))
      throw new PluginFailure(`${this.#hook} returned something that is not an object.`);
    if (raw["effects"] !== undefined) applyEffects(this.#exchange, raw);
    return this.#parse(raw);
  }
}

const parseNothing = (): undefined => undefined;

function parseEdit({ fields, without = [] }: Untrusted): Body | undefined {
  if (fields === undefined) return undefined;
  if (!isMapping(fields) || !Array.isArray(without))
    throw new PluginFailure("edit returned no fields.");
  const removed = (without as readonly unknown[]).map((field) => [String(field), undefined]);
  return { ...(fields as Body), ...Object.fromEntries(removed) };
}

function parseRoute(raw: unknown, list: Parameters<NonNullable<Hooks["route"]>>[0]): RouteResult {
  if (!Array.isArray(raw)) throw new PluginFailure("route returned no list.");
  return (raw as readonly unknown[]).map((one) => {
    const { i, kind, code, message } = (isMapping(one) ? one : {}) as Record<string, unknown>;
    const candidate = list[typeof i === "number" ? i : -1];
    if (!candidate) throw new PluginFailure("route returned an unknown candidate.");
    return kind === undefined ? candidate : ({ candidate, kind, code, message } as Exclusion);
  });
}

function parseAttempt(raw: Untrusted, reply: UpstreamResponse | undefined): AttemptResult {
  const { response, recorded } = raw;
  if (isMapping(response)) return { response: response as never };
  if (isMapping(recorded) && typeof recorded["body"] === "string")
    return {
      ...(recorded as unknown as RecordedResponse),
      body: Buffer.from(recorded["body"], "base64"),
    };
  if (raw["reply"] === true && reply) return reply;
  throw new PluginFailure("attempt returned no response.");
}
