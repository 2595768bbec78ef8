// Relays requests to servers. Each call of a tool has a ledger row before it is sent. The client and
// the server can speak different revisions: requests for input are converted between them.
import { hash } from "node:crypto";
import { getFault, type Context, type ErrorKind, type JsonObject } from "tollgate/plugin";
import { ArgumentsHash } from "./arguments-hash.ts";
import type { ClientReply } from "./client-reply.ts";
import type { ClientRequests } from "./client-requests.ts";
import { assertArgumentHeaders, type Client } from "./client.ts";
import { createErrorCleaner, findTarget, hiddenNames, type Target } from "./directory.ts";
import { mirrorArguments } from "./header-values.ts";
import { HIDDEN_MESSAGE, type HiddenNames } from "./hidden-names.ts";
import {
  canceledError,
  canonicalJson,
  ClientError,
  isObject,
  RPC_ERRORS,
  wrongShape,
} from "./json-rpc.ts";
import { argumentAt } from "./list-entries.ts";
import type { MountedServer } from "./mounted-server.ts";
import { withPublicUris } from "./public-names.ts";
import type { SealedState } from "./sealed-state.ts";
import { INPUT_MS, SuspendableCall, type SuspendedCalls } from "./suspended-calls.ts";
import { ServerError, URL_ELICITATION_REQUIRED, type ServerMethod } from "./tool-server.ts";

/** Largest number of requests for input during one request of a client with a session. */
const MAX_ROUNDS = 8;
const MAX_INPUTS = 16;

/** Capability that a client needs for a request of a server. */
const CAPABILITIES: Readonly<Record<string, string>> = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
};

export interface RelayServices {
  readonly ctx: Context;
  readonly requests: ClientRequests;
  readonly suspended: SuspendedCalls;
  readonly sealed: SealedState;
}

type AskClient = (method: string, params: JsonObject) => Promise<JsonObject>;

export class Relay {
  readonly #of: RelayServices;
  readonly #argumentsHash: ArgumentsHash;

  constructor(services: RelayServices) {
    this.#of = services;
    this.#argumentsHash = new ArgumentsHash(services.ctx.deriveSecret("mcp arguments"));
  }

  /** Sends a request to its server and returns the result in the client's names. */
  async run(
    client: Client,
    method: ServerMethod,
    params: JsonObject,
    reply: ClientReply,
  ): Promise<JsonObject> {
    if (!client.isModern) return await this.#runOn(client, method, params, reply);
    const { requestState } = params;
    // The user has been asked to connect an account, which the request does not depend on.
    const isConnecting =
      typeof requestState === "string" &&
      this.#of.sealed.open(connectPurpose(client), requestState) !== undefined;
    try {
      const own = isConnecting ? withoutState(params) : params;
      return await this.#runOn(client, method, own, reply);
    } catch (problem) {
      const written = toConnectInput(client, problem);
      if (!written) throw problem;
      const { server } = problem as ServerError;
      const input =
        server == null
          ? written
          : (await createErrorCleaner(client.x, client.scope, server))?.(written);
      if (!input) throw problem;
      return {
        resultType: "input_required",
        inputRequests: { connect: input },
        requestState: this.#seal(connectPurpose(client), {}),
      };
    }
  }

  async #runOn(
    client: Client,
    method: ServerMethod,
    params: JsonObject,
    reply: ClientReply,
  ): Promise<JsonObject> {
    const { requestState, inputResponses } = params;
    const hasState = requestState !== undefined || inputResponses !== undefined;
    const own = hasState ? withoutState(params) : params;
    const found = findTarget(client.x, client.scope, method, own);
    const target = found instanceof Promise ? await found : found;
    assertArgumentsAllowed(client, target);
    const { tool } = target;
    reply.target =
      tool?.key ?? (method === "prompts/get" ? String(target.params["name"]) : undefined);
    const values = target.params["arguments"];
    if (client.isModern && tool && tool.mirrored.length > 0)
      assertArgumentHeaders(client.x, tool, (path) =>
        isObject(values) ? argumentAt(values, path) : undefined,
      );
    const result = client.isModern
      ? await this.#runStateless(client, target, reply, { requestState, inputResponses })
      : await this.#runWithSession(client, target, reply);
    return client.scope.only ? result : withPublicUris(target.server.name, result);
  }

  /** Runs a request of a client that receives requests for input as results. */
  async #runStateless(
    client: Client,
    target: Target,
    reply: ClientReply,
    { requestState, inputResponses }: JsonObject,
  ): Promise<JsonObject> {
    // Most calls have no state, so its purpose is computed only if it is needed.
    const seal = (state: JsonObject) => this.#seal(statePurpose(client, target), state);
    const state =
      requestState === undefined
        ? undefined
        : this.#openState(statePurpose(client, target), requestState);
    if (inputResponses !== undefined && (!state || !isObject(inputResponses)))
      throw new ClientError(
        RPC_ERRORS.invalidParams,
        "inputResponses must be an object, and needs the requestState of the result that asked for it.",
      );
    const suspendedId = state?.["suspended"];
    const call =
      typeof suspendedId === "string" ? this.#resume(suspendedId) : new SuspendableCall();
    call.setReceiver((name, of) => this.#forward(client, target, reply, name, of));
    const more = state && {
      ...(isObject(inputResponses) && { inputResponses }),
      ...(typeof state["server"] === "string" && { requestState: state["server"] }),
    };
    let isWaiting = typeof suspendedId === "string";
    let isAsked = false;
    const exchange = async (): Promise<JsonObject> => {
      isWaiting = false;
      if (typeof suspendedId === "string")
        call.answer(firstResponse(isObject(inputResponses) ? inputResponses : {}));
      else {
        if (reply.isCanceled) call.abort();
        call.start(() =>
          this.#send(client, target, call.signal, more, {
            onNotification: (name, of) => call.notify(name, of),
            askClient: (name, of) => call.ask(name, of),
          }),
        );
      }
      const step = await call.next(reply);
      if ("input" in step) {
        // Its names were removed when the server asked.
        isAsked = true;
        const { method, params } = step.input;
        this.#of.suspended.suspend(call);
        return {
          resultType: "input_required",
          inputRequests: { input: { method, params } },
          requestState: seal({ suspended: call.id }),
        };
      }
      if (step.result["resultType"] !== "input_required") return step.result;
      const { requestState: server } = step.result;
      const sealed = seal(typeof server === "string" ? { server } : {});
      return { ...step.result, requestState: sealed };
    };
    let result: JsonObject;
    try {
      result = await this.#withRow(client, target, reply, exchange);
    } catch (problem) {
      // A limit rejected the request, and the client can send it again.
      if (isWaiting) this.#of.suspended.suspend(call);
      throw problem;
    }
    return isAsked || !needsCleaning(result) ? result : cleanResult(client, target, result);
  }

  #resume(id: string): SuspendableCall {
    return (
      this.#of.suspended.take(id) ??
      failState(
        "The request that waited for this input has ended. Send it again without requestState.",
      )
    );
  }

  #seal(purpose: string, state: JsonObject): string {
    return this.#of.sealed.seal(purpose, { ...state, expires: Date.now() + 2 * INPUT_MS });
  }

  #openState(purpose: string, sealed: unknown): JsonObject {
    const state = typeof sealed === "string" ? this.#of.sealed.open(purpose, sealed) : undefined;
    if (!state || Number(state["expires"]) <= Date.now())
      return failState("requestState is not valid for this request, or has expired.");
    return state;
  }

  /** Runs a request of a client that receives requests for input during its request. */
  async #runWithSession(client: Client, target: Target, reply: ClientReply): Promise<JsonObject> {
    const ask: AskClient = (method, params) => {
      const capability = CAPABILITIES[method];
      if (capability === undefined || client.profile.capabilities[capability] === undefined)
        return Promise.reject(
          new ServerError(`The client does not support ${method}.`, {
            code: RPC_ERRORS.methodNotFound,
            progress: "unknown",
          }),
        );
      return this.#of.requests.ask(client.profile.sessionId, reply, { method, params });
    };
    let more: JsonObject | undefined;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const received = await this.#withRow(client, target, reply, () =>
        this.#send(client, target, reply.signal, more, {
          onNotification: (name, of) => this.#forward(client, target, reply, name, of),
          askClient: ask,
        }),
      );
      const result = needsCleaning(received)
        ? await cleanResult(client, target, received)
        : received;
      if (result["resultType"] !== "input_required") return result;
      more = await askForInputs(result, ask);
    }
    throw new ServerError("The server asked for input too often.", {
      code: RPC_ERRORS.internal,
      progress: "rejected",
    });
  }

  async #send(
    client: Client,
    target: Target,
    signal: AbortSignal,
    more: JsonObject | undefined,
    on: {
      onNotification(method: string, params: JsonObject): void;
      askClient: AskClient;
    },
  ): Promise<JsonObject> {
    if (signal.aborted) throw canceledError();
    const { server, method, params, tool } = target;
    const values = params["arguments"];
    const askClient: AskClient = async (asked, of) =>
      on.askClient(asked, (await knownNames(client, server)).removeFromJson(of));
    const result = await server.withCaller(client.x, client.profile, signal, (caller) =>
      server.server.request(
        {
          method,
          params: more ? { ...params, ...more } : params,
          headers: tool && mirrorArguments(tool.mirrored, isObject(values) ? values : {}),
          onNotification: on.onNotification,
          askClient,
        },
        caller,
      ),
    );
    assertShape(method, result);
    return result;
  }

  /** Runs a request. The call of a tool runs between its reserve row and its settle row. */
  async #withRow(
    client: Client,
    { server, method, params, tool }: Target,
    reply: Pick<ClientReply, "isCanceled">,
    run: () => Promise<JsonObject>,
  ): Promise<JsonObject> {
    server.assertRetention(client.x);
    if (method !== "tools/call") return run();
    const call = await this.#of.ctx.openCall({
      parentRequest: client.x,
      provider: `mcp:${server.name}`,
      model: tool!.key,
      protocol: "mcp",
      price: server.priceOf(tool!.key),
      argumentsHash: this.#argumentsHash.of((params["arguments"] ?? {}) as JsonObject),
      hasZeroRetention: server.rules.zero_retention,
    });
    let result: JsonObject;
    try {
      result = await run();
    } catch (problem) {
      await call.settle(resultOfFailure(problem, reply));
      throw problem;
    }
    // A request for input is no result, so it is not billed.
    const state = result["resultType"] === "input_required" ? "void" : "exact";
    // Without this row, a killed gateway would bill the call, and its concurrency limits would
    // count it while the client sends the next one.
    await call.settle({ outcome: "ok", state });
    return result;
  }

  /** Forwards a notification that belongs to the client's request. */
  #forward(
    client: Client,
    { server }: Target,
    reply: ClientReply,
    method: string,
    params: JsonObject,
  ): void {
    const isWanted =
      method === "notifications/progress" ||
      (method === "notifications/message" &&
        (!client.isModern || client.profile.logLevel !== undefined));
    if (!isWanted) return;
    void hiddenNames(client.x, client.scope, server).then(
      (hidden) => hidden && reply.notify(method, hidden.removeFromJson(params, { isError: true })),
    );
  }
}

/** Whether a result is an error of a tool, a request for input, or a completion. */
const needsCleaning = ({ isError, inputRequests, completion }: JsonObject): boolean =>
  isError === true || isObject(inputRequests) || isObject(completion);

/**
 * Removes names of tools that the client may not call from a result. It runs after the call was
 * settled, because the server has done its work also if the names are not known.
 */
async function cleanResult(
  client: Client,
  { server, method }: Target,
  result: JsonObject,
): Promise<JsonObject> {
  const { inputRequests, completion } = result;
  const isError = result["isError"] === true;
  const hidden =
    method === "tools/call"
      ? await hiddenNames(client.x, client.scope, server)
      : await knownNames(client, server);
  if (!hidden) {
    const text = isError ? HIDDEN_MESSAGE : HIDDEN_INPUT_MESSAGE;
    return { resultType: "complete", isError: true, content: [{ type: "text", text }] };
  }
  if (isError) return hidden.removeFromJson(result, { isError, isResult: true });
  if (isObject(inputRequests))
    return { ...result, inputRequests: hidden.removeFromJson(inputRequests) };
  return {
    ...result,
    completion: hidden.removeFromJson(completion as JsonObject, { isError: true }),
  };
}

const HIDDEN_INPUT_MESSAGE =
  "The server asked for input. Its text can name tools that this key may not call, so it is not shown.";

/** Returns the names of tools that the client may not call. Throws if they are not known. */
async function knownNames({ x, scope }: Client, server: MountedServer): Promise<HiddenNames> {
  const hidden = await hiddenNames(x, scope, server);
  if (hidden) return hidden;
  throw new ServerError("The tools of the server cannot be listed.", {
    code: RPC_ERRORS.internal,
    progress: "unknown",
  });
}

/** Returns parameters without the members that continue an earlier request. */
function withoutState(params: JsonObject): JsonObject {
  const { requestState: _, inputResponses: __, ...own } = params;
  return own;
}

const connectPurpose = ({ x }: Client): string => JSON.stringify(["connect", x.identity!.id]);

/**
 * Returns the request that asks the user of a client to open a URL. Undefined for other problems,
 * and for clients that cannot show a URL.
 */
function toConnectInput({ profile }: Client, problem: unknown): JsonObject | undefined {
  if (!(problem instanceof ServerError) || problem.code !== URL_ELICITATION_REQUIRED)
    return undefined;
  const { elicitation } = profile.capabilities;
  if (!isObject(elicitation) || elicitation["url"] === undefined) return undefined;
  const [first] = (problem.data?.["elicitations"] ?? []) as JsonObject[];
  if (!first) return undefined;
  const { elicitationId: _, ...params } = first;
  return { method: "elicitation/create", params };
}

const failState = (message: string): never => {
  throw new ClientError(RPC_ERRORS.invalidParams, message);
};

/** Purpose of a sealed state: the key, the server, and the request without its metadata. */
function statePurpose({ x }: Client, { server, method, params }: Target): string {
  const { _meta: _, ...own } = params;
  const digest = hash("sha256", canonicalJson(own));
  return JSON.stringify([x.identity!.id, server.name, method, digest]);
}

/** The gateway asks for one input at a time. */
const firstResponse = (responses: JsonObject): JsonObject | undefined =>
  isObject(responses["input"]) ? responses["input"] : undefined;

async function askForInputs(result: JsonObject, ask: AskClient): Promise<JsonObject> {
  const { inputRequests, requestState } = result;
  const requests = Object.entries(isObject(inputRequests) ? inputRequests : {});
  if (requests.length > MAX_INPUTS) throw wrongShape(`asks for more than ${MAX_INPUTS} inputs`);
  const inputResponses: Record<string, JsonObject> = {};
  for (const [name, request] of requests) {
    if (!isObject(request) || typeof request["method"] !== "string")
      throw wrongShape("has an input request of the wrong type");
    const params = isObject(request["params"]) ? request["params"] : {};
    inputResponses[name] = await ask(request["method"], params);
  }
  return {
    inputResponses,
    ...(typeof requestState === "string" && { requestState }),
  };
}

function assertArgumentsAllowed({ x }: Client, { server, params, tool }: Target): void {
  if (!tool) return;
  const values = params["arguments"] ?? {};
  if (!isObject(values))
    throw new ClientError(RPC_ERRORS.invalidParams, "arguments must be an object.");
  const violation = server.conditions.findViolation(tool.key, values, x.identity!);
  if (violation !== undefined)
    throw new ClientError(
      RPC_ERRORS.invalidParams,
      `These arguments are not allowed for this key: ${violation}.`,
      { data: { code: "arguments_not_allowed" } },
    );
}

/** Members of results that must be lists. */
const RESULT_MEMBERS: Readonly<Record<ServerMethod, string>> = {
  "tools/call": "content",
  "prompts/get": "messages",
  "resources/read": "contents",
  "completion/complete": "completion",
};

function assertShape(method: ServerMethod, result: JsonObject): void {
  if (result["resultType"] === "input_required") {
    const { inputRequests, requestState } = result;
    if (method === "completion/complete") throw wrongShape("asks for input where it may not");
    if (!isObject(inputRequests) && typeof requestState !== "string")
      throw wrongShape("asks for no input");
    return;
  }
  const member = RESULT_MEMBERS[method];
  const value = result[member];
  const isValid = method === "completion/complete" ? isObject(value) : Array.isArray(value);
  // A result with structured content may have no other content.
  if (
    !isValid &&
    !(method === "tools/call" && value === undefined && "structuredContent" in result)
  )
    throw wrongShape(`has no ${member}`);
}

/** Returns how a call is settled that failed. */
function resultOfFailure(
  problem: unknown,
  { isCanceled }: Pick<ClientReply, "isCanceled">,
): { outcome: ErrorKind; state: "estimated" | "void" } {
  const fault = getFault(problem);
  if (problem instanceof ServerError) {
    const state = problem.progress === "unknown" ? "estimated" : "void";
    if (isCanceled) return { outcome: "canceled", state };
    const isAuth = problem.status === 401 || problem.status === 403;
    const kind = isAuth ? "upstream_auth" : problem.status === 504 ? "timeout" : "upstream";
    return { outcome: kind, state };
  }
  if (isCanceled) return { outcome: "canceled", state: "estimated" };
  return { outcome: fault?.kind ?? "internal", state: "estimated" };
}
