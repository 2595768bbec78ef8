// Serves the admin API: every command of the gateway and of plugins at /admin/v1/<command>, for
// holders of a token or a session. The only other routes are the lists of commands, and login and
// logout.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Schema } from "../../config/schema-dialect.ts";
import type { Log } from "../../lib/log/log.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { originalQueryTextOf } from "../../lib/query-secrets.ts";
import { retryAfterMsFor, retryHeaders, withRetryHint } from "../../model/client-retry.ts";
import { ERRORS, fail, type Fault, getFault } from "../../model/error.ts";
import type { JsonObject, Json } from "../../model/values.ts";
import { createPlainError as errorBody } from "../../pipeline/stages/reject.ts";
import { jsonReplacer } from "../socket/control-client.ts";
import type { CommandAudit } from "../dispatch/command-audit.ts";
import {
  createEtag,
  type CommandDispatcher,
  type DispatchOptions,
  type RegisteredCommand,
} from "../dispatch/command-dispatcher.ts";
import {
  assertRole,
  principalId,
  type CommandPrincipal,
  type Principal,
  API_PATH,
  OIDC_PATH,
  OPENAPI_PATH,
} from "../../runtime/access/principal.ts";
import {
  formatSessionCookie,
  assertSameOrigin,
  readSessionToken,
} from "../../runtime/access/session-cookie.ts";
import type { AdminPrincipals } from "../../runtime/access/admin-principals.ts";
import { IdempotencyCache } from "./idempotency-cache.ts";
import { createOpenApi, commandMethodsOf, commandNameIn, commandPathOf } from "./openapi.ts";
import { CALLBACK, formatFlowCookie as oidcCookie, type OidcSignIn } from "./oidc-sign-in.ts";
import { toSentence } from "../../config/schema/schema-errors.ts";
import { checkInput } from "../dispatch/command-input.ts";

const SESSION_PATH = `${API_PATH}/session`;

interface ApiResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export interface AdminApiOptions {
  readonly dispatcher: CommandDispatcher;
  readonly adminPrincipals: AdminPrincipals;
  readonly oidc: OidcSignIn;
  readonly auditing: Pick<CommandAudit, "recordSignIn">;
  readonly log: Pick<Log, "error">;
}

/**
 * Prevents browsers from caching a response, showing it in a frame of another page, or treating it
 * as any type other than JSON.
 */
const RESPONSE_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;

export class AdminApi {
  readonly #options: AdminApiOptions;
  readonly #idempotency = new IdempotencyCache();

  constructor(options: AdminApiOptions) {
    this.#options = options;
  }

  /** Responds to a request. Never throws. */
  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = nextRequestId();
    try {
      const { status, body, headers } = await this.#respond(req);
      writeResponse(res, id, status, body, headers);
    } catch (error) {
      const fault = getFault(error) ?? this.#unexpected(id, error);
      const responseBody = errorBody(withRetryHint(fault), id);
      writeResponse(res, id, statusOf(fault), responseBody, retryHeaders(retryAfterMsFor(fault)));
    }
  }

  #unexpected(request: string, err: unknown): Fault {
    this.#options.log.error({ request, err }, "admin command failed");
    return {
      kind: "internal",
      message: `Internal error. See the gateway log for request ${request}.`,
    };
  }

  async #respond(req: IncomingMessage): Promise<ApiResponse> {
    const [path = ""] = (req.url ?? "/").split("?", 1);
    if (path === SESSION_PATH) return this.#session(req);
    if (path === OIDC_PATH || path === CALLBACK)
      return allowMethod("GET", req, () =>
        redirectErrors(
          req,
          path === OIDC_PATH ? this.#redirectToProvider(req) : this.#finishSignIn(req),
        ),
      );
    const giver = await this.#options.adminPrincipals.identify(req);
    if (path === API_PATH)
      return allowMethod("GET", req, () => ok({ commands: this.#describeCommands(giver) }));
    if (path === OPENAPI_PATH)
      return allowMethod("GET", req, () => ok(createOpenApi(this.#options.dispatcher.list())));
    return this.#command(req, commandNameIn(path), giver);
  }

  async #command(
    req: IncomingMessage,
    name: string,
    giver: CommandPrincipal,
  ): Promise<ApiResponse> {
    const { dispatcher } = this.#options;
    const command =
      dispatcher.find(name) ??
      fail("not_found", `Unknown command "${name}".`, {
        code: "unknown_command",
      });
    assertRole(giver, command.spec.role);
    const methods = commandMethodsOf(command);
    if (!methods.includes(req.method ?? "")) return notAllowed(methods);
    if (req.method === "GET") {
      const queryInput = parseQueryInput(command.spec.input as Schema, originalQueryTextOf(req));
      const answer = await dispatcher.dispatch(name, queryInput, giver);
      return ok(answer, { etag: createEtag(answer) });
    }
    const input = await readJsonBody(req);
    const ifMatch = req.headers["if-match"];
    const key = [req.headers["idempotency-key"]].flat()[0];
    if (key === undefined || !command.spec.writes)
      return ok(await dispatcher.dispatch(name, input, giver, { ifMatch }));
    const principal = principalId(giver);
    const once: DispatchOptions["runOnce"] = (scopedInput, work) =>
      this.#idempotency.getOrRun({ principal, key }, [name, scopedInput, ifMatch], work);
    return ok(await dispatcher.dispatch(name, input, giver, { ifMatch, runOnce: once }));
  }

  /** Returns the commands that the principal may use. */
  #describeCommands(principal: CommandPrincipal): readonly JsonObject[] {
    return this.#allowedCommands(principal).map((command) => {
      const { summary, input, output, role, writes } = command.spec;
      const path = commandPathOf(command.name);
      const methods = commandMethodsOf(command);
      return { name: command.name, path, methods, summary, role, writes, input, output };
    }) as never;
  }

  #allowedCommands(principal: CommandPrincipal): readonly RegisteredCommand[] {
    const { dispatcher } = this.#options;
    return dispatcher.list().filter(({ spec }) => dispatcher.isAllowed(principal, spec));
  }

  /**
   * Returns the part of the session or token that its holder may see. A page shows only the
   * commands in `commands`, so no shown command is rejected because of its role.
   */
  #toShownPrincipal(principal: CommandPrincipal, expiresAt?: number) {
    const { name, role, account, channel } = principal;
    const commands = this.#allowedCommands(principal).map((command) => command.name);
    return { name, role, account: account ?? null, channel, expiresAt, commands };
  }

  /** Redirects to the identity provider. */
  async #redirectToProvider(req: IncomingMessage): Promise<ApiResponse> {
    const secure = this.#options.adminPrincipals.isSecure(req);
    const { location, cookie } = await this.#options.oidc.start(req, secure);
    return redirect(location, cookie === undefined ? [] : [cookie]);
  }

  /** Handles the return from the identity provider, and redirects to the start page. */
  async #finishSignIn(req: IncomingMessage): Promise<ApiResponse> {
    const { adminPrincipals, oidc } = this.#options;
    const secure = adminPrincipals.isSecure(req);
    const principal = await adminPrincipals.identifyByProvider(req, originalQueryTextOf(req), () =>
      oidc.finish(req, secure),
    );
    const there = readSessionToken(req, secure);
    const before = there === undefined ? undefined : adminPrincipals.sessions.find(there);
    if (before) adminPrincipals.sessions.end(({ id }) => id === before.id);
    const { token, session } = await this.#startSession(req, principal);
    const cookie = formatSessionCookie(token, secure, session.expiresAt - session.startedAt);
    return redirect("/", [cookie, oidcCookie(undefined, secure)]);
  }

  async #startSession(req: IncomingMessage, principal: Principal) {
    await this.#recordAudit("sign-in", req, principal);
    const { sessions } = this.#options.adminPrincipals;
    return sessions.start(principal, this.#options.adminPrincipals.clientAddressOf(req));
  }

  #recordAudit(what: string, req: IncomingMessage, principal: Principal): Promise<void> {
    const address = this.#options.adminPrincipals.clientAddressOf(req);
    return this.#options.auditing.recordSignIn(what, { ...principal, channel: "session", address });
  }

  get #signInOption(): { readonly sign_in?: string } {
    return this.#options.oidc.isConfigured ? { sign_in: OIDC_PATH } : {};
  }

  /** Returns the caller's session. If there is none, the error contains the login options. */
  async #whoAmI(req: IncomingMessage): Promise<ApiResponse> {
    try {
      return ok({
        ...this.#toShownPrincipal(await this.#options.adminPrincipals.identify(req)),
        ...this.#signInOption,
      });
    } catch (error) {
      const fault = getFault(error);
      if (fault?.kind !== "unauthenticated" || !this.#options.oidc.isConfigured) throw error;
      return {
        status: statusOf(fault),
        body: { ...errorBody(fault, nextRequestId()), ...this.#signInOption },
      };
    }
  }

  async #session(req: IncomingMessage): Promise<ApiResponse> {
    const { adminPrincipals } = this.#options;
    if (req.method === "GET") return this.#whoAmI(req);
    if (req.method !== "POST" && req.method !== "DELETE")
      return notAllowed(["GET", "POST", "DELETE"]);
    const secure = adminPrincipals.isSecure(req);
    assertSameOrigin(req, secure);
    const there = readSessionToken(req, secure);
    const before = there === undefined ? undefined : adminPrincipals.sessions.find(there);
    const end = () => before && adminPrincipals.sessions.end(({ id }) => id === before.id);
    if (req.method === "DELETE") {
      if (before) await this.#recordAudit("sign-out", req, before);
      end();
      return ok(
        { ended: before !== undefined },
        { "set-cookie": formatSessionCookie(undefined, secure, 0) },
      );
    }
    const principal = await adminPrincipals.login(req, parseLogin(await readJsonBody(req)));
    // The previous session is ended, so that an old token never belongs to the new session.
    end();
    const { token, session } = await this.#startSession(req, principal);
    const cookie = formatSessionCookie(token, secure, session.expiresAt - session.startedAt);
    const self = this.#toShownPrincipal({ ...principal, channel: "session" }, session.expiresAt);
    return ok(self, { "set-cookie": cookie });
  }
}

/**
 * Redirects a browser to the login page with the error code. Other clients receive the error
 * itself.
 */
async function redirectErrors(
  req: IncomingMessage,
  work: Promise<ApiResponse>,
): Promise<ApiResponse> {
  try {
    return await work;
  } catch (error) {
    const fault = getFault(error);
    if (!fault || !req.headers.accept?.includes("text/html")) throw error;
    return redirect(`/#problem=${encodeURIComponent(fault.code ?? fault.kind)}`, []);
  }
}

const ok = (body: unknown, headers?: ApiResponse["headers"]): ApiResponse => ({
  status: 200,
  body,
  ...(headers && { headers }),
});

const redirect = (location: string, cookies: readonly string[]): ApiResponse => ({
  status: 302,
  body: { location },
  headers: { location, "set-cookie": cookies },
});

const allowMethod = <A extends ApiResponse | Promise<ApiResponse>>(
  method: string,
  req: IncomingMessage,
  answer: () => A,
): A | ApiResponse => (req.method === method ? answer() : notAllowed([method]));

function notAllowed(methods: readonly string[]): ApiResponse {
  const fault: Fault = {
    kind: "invalid",
    code: "method_not_allowed",
    message: `Use ${methods.join(" or ")}.`,
  };
  return { status: 405, body: errorBody(fault, ""), headers: { allow: methods.join(", ") } };
}

function parseLogin({ code, token, ...more }: JsonObject): { code?: string; token?: string } {
  if (Object.keys(more).length > 0 || typeof (code ?? token) !== "string" || (code && token))
    fail("invalid", 'Send { "code": "…" } or { "token": "…" }.', { code: "bad_input" });
  return code === undefined ? { token: token as string } : { code: code as string };
}

const STATUS_OF_CODE: Readonly<Record<string, number>> = { version_conflict: 412, media_type: 415 };
const statusOf = ({ kind, code }: Fault): number => STATUS_OF_CODE[code ?? ""] ?? ERRORS[kind][0];

function writeResponse(
  res: ServerResponse,
  id: string,
  status: number,
  body: unknown,
  headers: ApiResponse["headers"],
): void {
  if (res.headersSent || res.destroyed) return;
  const text = JSON.stringify(body ?? null, jsonReplacer);
  res.writeHead(status, {
    ...RESPONSE_HEADERS,
    "x-request-id": id,
    "content-length": Buffer.byteLength(text),
    ...headers,
    ...(!res.req.complete && { connection: "close" }),
  });
  res.end(text);
}

// Reads the input of an admin API request: the JSON body, or the query parameters, which are
// converted according to the command's schema.

const MAX_BODY_BYTES = 1 << 20;
/** Maximum number of query parameters. */
const MAX_QUERY_PARAMS = 200;

async function readJsonBody(req: IncomingMessage): Promise<JsonObject> {
  const [type = ""] = (req.headers["content-type"] ?? "").split(";", 1);
  if (type.trim().toLowerCase() !== "application/json")
    fail("invalid", "Send the input as JSON, with content-type: application/json.", {
      code: "media_type",
    });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES)
      fail("too_large", "The input must be at most 1 MiB.", { code: "body_too_large" });
    chunks.push(chunk as Buffer);
  }
  const input = parseJson(Buffer.concat(chunks).toString());
  if (typeof input === "object" && input !== null && !Array.isArray(input))
    return input as JsonObject;
  return fail("invalid", "The input must be a JSON object.", { code: "bad_input" });
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text || "{}") as Json;
  } catch {
    return fail("invalid", "The input is not valid JSON.", { code: "bad_input" });
  }
}

/**
 * Parses query parameters. A list can be repeated parameters or comma-separated values. Types other
 * than text and lists are JSON.
 */
function parseQueryInput(schema: Schema, query: string): JsonObject {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  const params = [...new URLSearchParams(query)];
  if (params.length > MAX_QUERY_PARAMS)
    fail("invalid", `The URL can have at most ${MAX_QUERY_PARAMS} query parameters.`, {
      code: "bad_input",
    });
  const input: Record<string, Json> = {};
  for (const [name, text] of params) {
    const type = Object.hasOwn(properties, name) ? properties[name]!["type"] : undefined;
    if (type === "array") input[name] = [...((input[name] ?? []) as Json[]), ...text.split(",")];
    else if (name in input)
      fail("invalid", `/${name}: duplicate parameter.`, { code: "bad_input", param: `/${name}` });
    else input[name] = type === "object" ? parseJson(text) : text;
  }
  const { value, errors } = checkInput(schema, input, () => true);
  const [first] = errors;
  return first
    ? fail("invalid", errors.map(toSentence).join("; "), {
        code: "bad_input",
        param: first.pointer,
      })
    : (value as JsonObject);
}
