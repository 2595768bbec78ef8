// Sends a small call with one credential on behalf of an operator. The call passes through the
// whole request pipeline, so its cost is reserved, billed, and reported to observers. There is no
// other way to call a provider.
import { createServer, request, type IncomingMessage } from "node:http";
import { duplexPair } from "node:stream";
import { nanoToDecimal } from "../../money/decimal.ts";
import { fail } from "../../model/error.ts";
import type { Usage } from "../../model/usage.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import { chatCompletions } from "../../protocols/chat-completions/index.ts";
import { createHookRunner } from "../../pipeline/hooks/hook-runner.ts";
import type { Generation } from "../../pipeline/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../pipeline/exchange/mounted.ts";
import { runPipeline } from "../../pipeline/pipeline.ts";

/** Result of a test call. */
export type TestCallResult =
  | {
      readonly credential: string;
      readonly ok: false;
      readonly model: null;
      readonly reason: string;
    }
  | {
      readonly credential: string;
      readonly ok: boolean;
      readonly model: string;
      /** ID of the call's request. */
      readonly request: string;
      readonly status: number;
      readonly ms: number;
      /** Time to the first token, in milliseconds. */
      readonly firstTokenMs: number | undefined;
      readonly usage: Usage | undefined;
      /** Cost in US dollars. Null if the price is unknown. */
      readonly usd: string | null;
      /** Reason of the failure. */
      readonly reason: string | undefined;
    };

interface TestTarget {
  readonly provider: string;
  readonly credential: string;
  readonly model: string;
}

interface RunningTest extends TestTarget {
  outcome: Outcome | undefined;
}

/** Names of the frontend and the key of test calls in reports. */
const TEST_FRONTEND = "providers.test";
const TEST_KEY = "operator";
const TICKET_HEADER = "x-tollgate-test";
/** Maximum number of concurrent test calls per gateway. */
const MAX_CONCURRENT = 4;
/** Timeout, in milliseconds. It is short because an operator waits for the result. */
const TIMEOUT_MS = 30_000;
/** Maximum output tokens. Some models reject a smaller maximum. */
const MAX_TOKENS = 16;
/** Maximum length of an error message, in characters. */
const MAX_REASON_CHARS = 500;

export class TestCalls {
  readonly #running = new Map<string, RunningTest>();
  readonly #route: MountedRoute;
  #ticketCount = 0;

  constructor() {
    const frontend = createTestFrontend((ticket) => this.#running.get(ticket));
    const [route] = frontend.plugin.routes;
    this.#route = { frontend, route: route!, path: `/${TEST_FRONTEND}` };
  }

  async run(gen: Generation, meant: TestTarget): Promise<TestCallResult> {
    if (this.#running.size >= MAX_CONCURRENT)
      fail(
        "rate_limited",
        `${MAX_CONCURRENT} tests are already running. Wait until one of them ends.`,
        {
          code: "too_many_tests",
        },
      );
    const ticket = String(++this.#ticketCount);
    const test: RunningTest = { ...meant, outcome: undefined };
    this.#running.set(ticket, test);
    const began = performance.now();
    try {
      const { id, status, text } = await this.#send(gen, ticket, meant);
      const [call] = (test.outcome?.calls ?? []).toReversed();
      const ok = status === 200;
      return {
        credential: meant.credential,
        ok,
        model: meant.model,
        request: id,
        status,
        ms: Math.round(performance.now() - began),
        firstTokenMs: call?.ms.firstToken,
        usage: call?.usage,
        usd: call?.costNano == null ? null : nanoToDecimal(call.costNano),
        reason: ok ? undefined : errorMessageIn(text),
      };
    } finally {
      this.#running.delete(ticket);
    }
  }

  /**
   * Sends the request over a connection within this process, so the pipeline receives the same
   * input as from a client.
   */
  async #send(gen: Generation, ticket: string, { provider, model }: TestTarget) {
    const [near, far] = duplexPair();
    const route = this.#route;
    const walked = Promise.withResolvers<void>();
    const server = createServer((req, res) =>
      runPipeline(gen, route, { req, res, params: {} }).then(walked.resolve, (error: unknown) => {
        res.destroy();
        walked.reject(error as Error);
      }),
    );
    server.emit("connection", far);
    try {
      const answered = await sendRequest(near, {
        ticket,
        body: JSON.stringify({
          model: `${provider}/${model}`,
          messages: [{ role: "user", content: "Say ok." }],
          max_completion_tokens: MAX_TOKENS,
        }),
      });
      // The result includes what the settle hook reports.
      await walked.promise;
      return answered;
    } finally {
      near.destroy();
      server.close();
    }
  }
}

type DuplexEnd = ReturnType<typeof duplexPair>[0];

function sendRequest(near: DuplexEnd, { ticket, body }: { ticket: string; body: string }) {
  return new Promise<{ id: string; status: number; text: string }>((resolve, reject) => {
    const req = request(
      {
        createConnection: () => near as never,
        method: "POST",
        path: `/${TEST_FRONTEND}`,
        headers: {
          host: "localhost",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          [TICKET_HEADER]: ticket,
        },
      },
      (res) => {
        readText(res).then((text) => {
          clearTimeout(timer);
          resolve({ id: String(res.headers["x-request-id"]), status: res.statusCode ?? 0, text });
        }, reject);
      },
    );
    const timer = setTimeout(
      () => req.destroy(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)),
      TIMEOUT_MS,
    );
    req.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    req.end(body);
  });
}

async function readText(res: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of res.setEncoding("utf8")) text += chunk as string;
  return text;
}

/** Returns the message of an error. Secrets were removed from it before. */
function errorMessageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return String(error?.message ?? "It failed.").slice(0, MAX_REASON_CHARS);
  } catch {
    return "The call failed without an error message.";
  }
}

/**
 * Creates the frontend of test calls with its own hooks. An operator's call has no key limits, and
 * middleware for clients do not affect whether a provider answers. The route hook selects the
 * credential.
 */
function createTestFrontend(
  underWay: (ticket: string) => RunningTest | undefined,
): MountedFrontend {
  const protocol = chatCompletions();
  const { server } = protocol as { readonly server: NonNullable<MountedFrontend["server"]> };
  const ticketOf = ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
    underWay(String(headers[TICKET_HEADER]));
  const hook = { id: TEST_FRONTEND, appliesTo: () => true };
  const hooks = createHookRunner([], TEST_FRONTEND).with({
    admit: [{ ...hook, run: (x) => x.identify({ id: TEST_KEY }) }],
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
          const ownTicket = ticketOf(x);
          if (ownTicket) ownTicket.outcome = outcome;
        },
      },
    ],
  });
  return {
    name: TEST_FRONTEND,
    plugin: {
      protocol,
      routes: [{ method: "POST", path: `/${TEST_FRONTEND}`, actionType: "generate", body: "json" }],
    },
    routes: [],
    protocol,
    // The request is always translated, because only the codec knows the provider's field for the
    // output limit.
    server: {
      ...server,
      analyze: (body) => ({ ...server.analyze(body), requiresTranslation: true }),
    },
    validate: () => undefined,
    extractCredential: () => undefined,
    hooks,
    byProtocol: new Map(),
  };
}
