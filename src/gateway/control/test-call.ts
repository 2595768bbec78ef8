// A small call with one credential, when an operator asks for it. It is a request like any other but for where it comes from: it goes
// the whole walk, so what it costs is reserved, billed and told to observers, and there is no second way out to a provider.
import { createServer, request, type IncomingMessage } from "node:http";
import { duplexPair } from "node:stream";
import { nanoToDecimal } from "../../money/format.ts";
import { fail } from "../../model/error.ts";
import type { Usage } from "../../model/usage.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import { chatCompletions } from "../../protocols/chat-completions/index.ts";
import { compile, type Chain } from "../../walk/hooks.ts";
import type { Generation } from "../../walk/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../walk/mounted.ts";
import { walk } from "../../walk/walk.ts";

/** What became of one. */
export type Tested =
  | { readonly credential: string; readonly ok: false; readonly model: null; readonly why: string }
  | {
      readonly credential: string;
      readonly ok: boolean;
      readonly model: string;
      /** The id of its request. */
      readonly request: string;
      readonly status: number;
      readonly ms: number;
      /** Until its first content. */
      readonly contentMs: number | undefined;
      readonly usage: Usage | undefined;
      /** Dollars; null: its price is not known. */
      readonly usd: string | null;
      /** Why it failed. */
      readonly why: string | undefined;
    };

interface Meant {
  readonly provider: string;
  readonly credential: string;
  readonly model: string;
}

interface UnderWay extends Meant {
  heard: Outcome | undefined;
}

/** As reports call the frontend and the key of what an operator tests. */
const FRONTEND = "providers.test";
const KEY = "operator";
const TICKET = "x-tollgate-test";
/** Of the gateway. */
const AT_ONCE = 4;
/** An operator waits for it. */
const MOST_MS = 30_000;
/** Some models refuse to say less. */
const TOKENS = 16;
/** Of what an error says. */
const WHY_CHARACTERS = 500;

export class TestCalls {
  readonly #underWay = new Map<string, UnderWay>();
  readonly #route: MountedRoute;
  #tickets = 0;

  constructor() {
    const frontend = frontendOf((ticket) => this.#underWay.get(ticket));
    const [route] = frontend.frontend.routes;
    this.#route = { frontend, route: route!, path: `/${FRONTEND}` };
  }

  async make(gen: Generation, meant: Meant): Promise<Tested> {
    if (this.#underWay.size >= AT_ONCE)
      fail("rate_limited", `${AT_ONCE} tests are under way. Wait for one of them.`, {
        code: "too_many_tests",
      });
    const ticket = String(++this.#tickets);
    const mine: UnderWay = { ...meant, heard: undefined };
    this.#underWay.set(ticket, mine);
    const began = performance.now();
    try {
      const { id, status, text } = await this.#sent(gen, ticket, meant);
      const [call] = (mine.heard?.calls ?? []).toReversed();
      const ok = status === 200;
      return {
        credential: meant.credential,
        ok,
        model: meant.model,
        request: id,
        status,
        ms: Math.round(performance.now() - began),
        contentMs: call?.ms.content,
        usage: call?.usage,
        usd: call?.costNano == null ? null : nanoToDecimal(call.costNano),
        why: ok ? undefined : messageIn(text),
      };
    } finally {
      this.#underWay.delete(ticket);
    }
  }

  /** Over a connection that is inside this process: the walk is given what it is given by a client. */
  async #sent(gen: Generation, ticket: string, { provider, model }: Meant) {
    const [near, far] = duplexPair();
    const route = this.#route;
    const walked = Promise.withResolvers<void>();
    const server = createServer((req, res) =>
      walk(gen, route, { req, res, params: {} }).then(walked.resolve, (error: unknown) => {
        res.destroy();
        walked.reject(error as Error);
      }),
    );
    server.emit("connection", far);
    try {
      const answered = await asked(near, {
        ticket,
        body: JSON.stringify({
          model: `${provider}/${model}`,
          messages: [{ role: "user", content: "Say ok." }],
          max_completion_tokens: TOKENS,
        }),
      });
      // What its settling tells is part of the answer.
      await walked.promise;
      return answered;
    } finally {
      near.destroy();
      server.close();
    }
  }
}

type Near = ReturnType<typeof duplexPair>[0];

function asked(near: Near, { ticket, body }: { ticket: string; body: string }) {
  return new Promise<{ id: string; status: number; text: string }>((resolve, reject) => {
    const req = request(
      {
        createConnection: () => near as never,
        method: "POST",
        path: `/${FRONTEND}`,
        headers: {
          host: "localhost",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          [TICKET]: ticket,
        },
      },
      (res) => {
        texts(res).then((text) => {
          clearTimeout(timer);
          resolve({ id: String(res.headers["x-request-id"]), status: res.statusCode ?? 0, text });
        }, reject);
      },
    );
    const timer = setTimeout(
      () => req.destroy(new Error(`no answer within ${MOST_MS / 1_000} s`)),
      MOST_MS,
    );
    req.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    req.end(body);
  });
}

async function texts(res: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of res.setEncoding("utf8")) text += chunk as string;
  return text;
}

/** An error's own words: what is secret in them was taken out on the way. */
function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return String(error?.message ?? "It failed.").slice(0, WHY_CHARACTERS);
  } catch {
    return "It failed, and did not say why.";
  }
}

/**
 * Its hooks are the host's own: an operator's call has no limits of a key, and the middleware of clients says nothing of whether a
 * provider answers. Which credential is meant, the route hook says.
 */
function frontendOf(underWay: (ticket: string) => UnderWay | undefined): MountedFrontend {
  const protocol = chatCompletions();
  const { server } = protocol as { readonly server: NonNullable<MountedFrontend["server"]> };
  const ticketOf = ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
    underWay(String(headers[TICKET]));
  const hook = { id: FRONTEND, applies: () => true };
  const chain: Chain = {
    ...compile([], FRONTEND),
    admit: [{ ...hook, run: (x) => x.identify({ id: KEY }) }],
    route: [
      {
        ...hook,
        run: (candidates, x) =>
          candidates.filter(({ credential }) => credential === ticketOf(x)?.credential),
      },
    ],
    settle: [
      {
        ...hook,
        run(x, outcome) {
          const mine = ticketOf(x);
          if (mine) mine.heard = outcome;
        },
      },
    ],
  };
  return {
    name: FRONTEND,
    frontend: {
      protocol,
      routes: [{ method: "POST", path: `/${FRONTEND}`, op: "generate", body: "json" }],
    },
    routes: [],
    protocol,
    // Translated always: each provider's own way to say how much may come is known to its codec alone.
    server: { ...server, survey: (body) => ({ ...server.survey(body), translate: true }) },
    validate: () => undefined,
    secret: () => undefined,
    chain,
    spoken: new Map(),
  };
}
