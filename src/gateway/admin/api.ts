// The admin API: every command of the table and of plugins at /admin/v1/<command>, for those that hold a token or a session. There is no
// route here that is no command, but for the lists of them and for signing in and out.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Schema } from "../../config/dialect.ts";
import type { Log } from "../../lib/log.ts";
import { nextId } from "../../lib/id.ts";
import { queryTextOf } from "../../lib/query-secrets.ts";
import { retryAfterOf, retryHeaders, withRetry } from "../../model/client-retry.ts";
import { ERRORS, fail, type Fault, faultOf } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { plain as errorBody } from "../../walk/stations/refuse.ts";
import { plain } from "../control/asking.ts";
import type { Auditing } from "../control/auditing.ts";
import { etagOf } from "../control/etag.ts";
import type { CommandGate, GivenWith, KnownCommand } from "../control/gate.ts";
import { mustBeRole, principalId, type Giver, type Principal } from "../control/giver.ts";
import { jsonOf, queryInput } from "./asked.ts";
import { cookieOf, mustBeOurPage, sessionWord } from "./cookie.ts";
import type { Holders } from "./holders.ts";
import { Made } from "./made.ts";
import { openApi } from "./openapi.ts";
import { CALLBACK, cookieOf as oidcCookie, type Oidc } from "./oidc.ts";
import { API, methodsOf, nameIn, OIDC, OPENAPI, pathOf } from "./paths.ts";

const SESSION = `${API}/session`;

interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export interface AdminApiOf {
  readonly gate: CommandGate;
  readonly holders: Holders;
  readonly oidc: Oidc;
  readonly auditing: Pick<Auditing, "noted">;
  readonly log: Pick<Log, "error">;
}

/** Nothing of it is kept by a browser, shown in another page's frame, or taken for anything but JSON. */
const HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;

export class AdminApi {
  readonly #of: AdminApiOf;
  readonly #made = new Made();

  constructor(of: AdminApiOf) {
    this.#of = of;
  }

  /** Answers it, whatever goes wrong. */
  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = nextId();
    try {
      const { status, body, headers } = await this.#answer(req);
      write(res, id, status, body, headers);
    } catch (error) {
      const fault = faultOf(error) ?? this.#unexpected(id, error);
      const told = errorBody(withRetry(fault), id);
      write(res, id, statusOf(fault), told, retryHeaders(retryAfterOf(fault)));
    }
  }

  #unexpected(request: string, err: unknown): Fault {
    this.#of.log.error({ request, err }, "a command failed");
    return {
      kind: "internal",
      message: `Something went wrong here. The log has it under ${request}.`,
    };
  }

  async #answer(req: IncomingMessage): Promise<ApiAnswer> {
    const [path = ""] = (req.url ?? "/").split("?", 1);
    if (path === SESSION) return this.#session(req);
    if (path === OIDC || path === CALLBACK)
      return only("GET", req, () =>
        inBrowser(req, path === OIDC ? this.#leave(req) : this.#comeBack(req)),
      );
    const giver = await this.#of.holders.giver(req);
    if (path === API) return only("GET", req, () => ok({ commands: this.#listed(giver) }));
    if (path === OPENAPI) return only("GET", req, () => ok(openApi(this.#of.gate.list())));
    return this.#command(req, nameIn(path), giver);
  }

  async #command(req: IncomingMessage, name: string, giver: Giver): Promise<ApiAnswer> {
    const { gate } = this.#of;
    const command =
      gate.known(name) ??
      fail("not_found", `This gateway does not know the command "${name}".`, {
        code: "unknown_command",
      });
    mustBeRole(giver, command.facts.role);
    const methods = methodsOf(command);
    if (!methods.includes(req.method ?? "")) return notAllowed(methods);
    if (req.method === "GET") {
      const said = queryInput(command.facts.input as Schema, queryTextOf(req));
      const answer = await gate.give(name, said, giver);
      return ok(answer, { etag: etagOf(answer) });
    }
    const input = await jsonOf(req);
    const ifMatch = req.headers["if-match"];
    const key = [req.headers["idempotency-key"]].flat()[0];
    if (key === undefined || !command.facts.writes)
      return ok(await gate.give(name, input, giver, { ifMatch }));
    const principal = principalId(giver);
    const once: GivenWith["once"] = (said, work) =>
      this.#made.once({ principal, key }, [name, said, ifMatch], work);
    return ok(await gate.give(name, input, giver, { ifMatch, once }));
  }

  /** The commands that it may give. */
  #listed(giver: Giver): readonly JsonObject[] {
    return this.#allowed(giver).map((command) => {
      const { summary, input, output, role, writes } = command.facts;
      const path = pathOf(command.name);
      const methods = methodsOf(command);
      return { name: command.name, path, methods, summary, role, writes, input, output };
    }) as never;
  }

  #allowed(giver: Giver): readonly KnownCommand[] {
    const { gate } = this.#of;
    return gate.list().filter(({ facts }) => gate.may(giver, facts));
  }

  /** A session, or a token, as its holder may see it: a page offers what `commands` lists, and nothing that would be refused. */
  #shown(giver: Giver, until?: number) {
    const { name, role, within, door } = giver;
    const commands = this.#allowed(giver).map((command) => command.name);
    return { name, role, account: within ?? null, door, until, commands };
  }

  /** To the identity provider. */
  async #leave(req: IncomingMessage): Promise<ApiAnswer> {
    const secure = this.#of.holders.isSecure(req);
    const { location, cookie } = await this.#of.oidc.begin(req, secure);
    return moved(location, cookie === undefined ? [] : [cookie]);
  }

  /** And from there, to the first page. */
  async #comeBack(req: IncomingMessage): Promise<ApiAnswer> {
    const { holders, oidc } = this.#of;
    const secure = holders.isSecure(req);
    const holder = await holders.vouched(req, queryTextOf(req), () => oidc.finish(req, secure));
    const there = sessionWord(req, secure);
    const before = there === undefined ? undefined : holders.sessions.find(there);
    if (before) holders.sessions.end(({ id }) => id === before.id);
    const { word, session } = await this.#begin(req, holder);
    const cookie = cookieOf(word, secure, session.until - session.began);
    return moved("/", [cookie, oidcCookie(undefined, secure)]);
  }

  async #begin(req: IncomingMessage, holder: Principal) {
    await this.#noted("sign-in", req, holder);
    const { sessions } = this.#of.holders;
    return sessions.begin(holder, this.#of.holders.address(req));
  }

  #noted(what: string, req: IncomingMessage, holder: Principal): Promise<void> {
    const address = this.#of.holders.address(req);
    return this.#of.auditing.noted(what, { ...holder, door: "session", address });
  }

  get #offer(): { readonly sign_in?: string } {
    return this.#of.oidc.offered ? { sign_in: OIDC } : {};
  }

  /** A browser that is not signed in is told where people are. */
  async #self(req: IncomingMessage): Promise<ApiAnswer> {
    try {
      return ok({ ...this.#shown(await this.#of.holders.giver(req)), ...this.#offer });
    } catch (error) {
      const fault = faultOf(error);
      if (fault?.kind !== "unauthenticated" || !this.#of.oidc.offered) throw error;
      return { status: statusOf(fault), body: { ...errorBody(fault, nextId()), ...this.#offer } };
    }
  }

  async #session(req: IncomingMessage): Promise<ApiAnswer> {
    const { holders } = this.#of;
    if (req.method === "GET") return this.#self(req);
    if (req.method !== "POST" && req.method !== "DELETE")
      return notAllowed(["GET", "POST", "DELETE"]);
    const secure = holders.isSecure(req);
    mustBeOurPage(req, secure);
    const there = sessionWord(req, secure);
    const before = there === undefined ? undefined : holders.sessions.find(there);
    const end = () => before && holders.sessions.end(({ id }) => id === before.id);
    if (req.method === "DELETE") {
      if (before) await this.#noted("sign-out", req, before);
      end();
      return ok({ ended: before !== undefined }, { "set-cookie": cookieOf(undefined, secure, 0) });
    }
    const holder = await holders.login(req, loginOf(await jsonOf(req)));
    // A word that was there before is never the one of what was begun now.
    end();
    const { word, session } = await this.#begin(req, holder);
    const cookie = cookieOf(word, secure, session.until - session.began);
    const self = this.#shown({ ...holder, door: "session" }, session.until);
    return ok(self, { "set-cookie": cookie });
  }
}

/** A browser that is sent here gets the sign-in page with the code of what went wrong; programs get the error itself. */
async function inBrowser(req: IncomingMessage, work: Promise<ApiAnswer>): Promise<ApiAnswer> {
  try {
    return await work;
  } catch (error) {
    const fault = faultOf(error);
    if (!fault || !req.headers.accept?.includes("text/html")) throw error;
    return moved(`/#problem=${encodeURIComponent(fault.code ?? fault.kind)}`, []);
  }
}

const ok = (body: unknown, headers?: ApiAnswer["headers"]): ApiAnswer => ({
  status: 200,
  body,
  ...(headers && { headers }),
});

const moved = (location: string, cookies: readonly string[]): ApiAnswer => ({
  status: 302,
  body: { location },
  headers: { location, "set-cookie": cookies },
});

const only = <A extends ApiAnswer | Promise<ApiAnswer>>(
  method: string,
  req: IncomingMessage,
  answer: () => A,
): A | ApiAnswer => (req.method === method ? answer() : notAllowed([method]));

function notAllowed(methods: readonly string[]): ApiAnswer {
  const fault: Fault = {
    kind: "invalid",
    code: "method_not_allowed",
    message: `Use ${methods.join(" or ")}.`,
  };
  return { status: 405, body: errorBody(fault, ""), headers: { allow: methods.join(", ") } };
}

function loginOf({ word, token, ...more }: JsonObject): { word?: string; token?: string } {
  if (Object.keys(more).length > 0 || typeof (word ?? token) !== "string" || (word && token))
    fail("invalid", 'Send { "word": "…" } or { "token": "…" }.', { code: "bad_input" });
  return word === undefined ? { token: token as string } : { word: word as string };
}

const STATUS: Readonly<Record<string, number>> = { changed_since: 412, media_type: 415 };
const statusOf = ({ kind, code }: Fault): number => STATUS[code ?? ""] ?? ERRORS[kind][0];

function write(
  res: ServerResponse,
  id: string,
  status: number,
  body: unknown,
  headers: ApiAnswer["headers"],
): void {
  if (res.headersSent || res.destroyed) return;
  const text = JSON.stringify(body ?? null, plain);
  res.writeHead(status, {
    ...HEADERS,
    "x-request-id": id,
    "content-length": Buffer.byteLength(text),
    ...headers,
    ...(!res.req.complete && { connection: "close" }),
  });
  res.end(text);
}
