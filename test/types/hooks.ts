// Hooks, and what they may do with what they are handed.
import {
  defineFrontend,
  defineMiddleware,
  fail,
  createFault,
  getFault,
  type RequestHead,
  type Call,
  type Candidate,
  type CandidateCooldown,
  type ChatRequest,
  type ErrorKind,
  type Exchange,
  type Fault,
  type SyntheticResponse,
  type Media,
  type ModelEvent,
  type ModelRequest,
  type Outgoing,
  type RateLimit,
  type RecordedResponse,
  type UpstreamResponse,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

const x = { api: 1, name: "x", summary: "x", sends: "nowhere" } as const;

// ── the usual shapes compile ──
export const usual = defineMiddleware({
  ...x,
  setup: () => ({
    async admit(arrival, credential) {
      is<Same<typeof credential, string | undefined>>();
      if (credential === undefined) return;
      arrival.identify({
        id: "someone",
        limits: [{ scope: "key", unit: "tokens", max: 10n, per: "day" }],
      });
      arrival.requirePrivacy("strict");
      arrival.setResponseHeader("x-served-by", "us");
    },
    rewrite: (request) =>
      request.operation === "chat" ? { ...request, user: undefined } : request,
    async inspect(request, exchange) {
      is<Same<typeof request, ModelRequest>>();
      exchange.addLabel("verdict", request.operation);
      if (request.operation === "chat" && request.turns.length > 100)
        fail("too_large", "Too many turns.");
    },
    watch: (_call, stop) => (e) => {
      if (e.type === "delta" && e.text.includes("no"))
        stop({ kind: "content_policy", message: "No." });
    },
    route: (list) =>
      list.map((candidate) => ({
        candidate,
        kind: "forbidden" as const,
        code: "no",
        message: "No.",
      })),
    charge: () => ({ limits: [], labels: { team: "a" }, hold: "hard" as const }),
    prepare(out, call) {
      if (out.get("store") === undefined) out.set("store", call.model !== "x");
      out.remove("user");
      out.setHeader("x-a", "1");
      out.setHeader("x-b");
    },
    async attempt(_call, next) {
      const reply = await next();
      is<Same<typeof reply.limits, readonly RateLimit[]>>();
      void reply.whenSettled().then(({ costNano }) => is<Same<typeof costNano, bigint | null>>());
      if (reply.status > 200)
        return { response: { blocks: [], finish: { type: "finish", reason: "refusal" } } };
      return (await reply.recordResponse(1000)) ?? reply;
    },
    event: (_call, next, stop) => (e) => {
      if (e.type === "delta" && e.text.includes("no"))
        return stop({ kind: "content_policy", message: "No." });
      next(e);
    },
    settle: (_x, outcome) => void outcome.calls.map((call) => call.costNano),
  }),
});

// ── what must be synchronous ──
export const asyncEvent = defineMiddleware({
  ...x,
  // @ts-expect-error  an event hook is made at once
  setup: () => ({ event: async (_call: Call, next: (e: ModelEvent) => void) => next }),
});
export const asyncStage = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  a stage that returns a promise would hold nothing back
    event: (_call, next) => async (e) => next(e),
  }),
});
export const asyncPrepare = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  the request leaves right after
    prepare: async () => {},
  }),
});
export const asyncCharge = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  one store call is made of all of them
    charge: async () => ({ limits: [] }),
  }),
});

export const asyncWatch = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  nothing waits for a watcher
    watch: () => async () => {},
  }),
});
export const changingWatch = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  a watcher changes nothing: there is no next
    watch: (_call, next: (e: ModelEvent) => void) => next,
  }),
});
export const rewritingInspect = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  what it reads it cannot give back changed
    inspect: (request: ModelRequest) => ({ ...request, model: "other" }),
  }),
});

// ── what must be said ──
export const noReply = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  an attempt answers
    attempt: async (_call: Call, next: () => Promise<UpstreamResponse>) => void (await next()),
  }),
});
export const shapelessRecording = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  a recording says of what kind and form it is
    attempt: async () => ({
      contentType: "text/plain",
      body: Buffer.alloc(0),
      usage: {},
      model: "m",
    }),
  }),
});
export const unfinishedAnswer = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  an answer of one's own has a finish
    attempt: async () => ({ response: { blocks: [{ type: "text", text: "No." }] } }),
  }),
});
export const costlyAnswer = defineMiddleware({
  ...x,
  setup: () => ({
    attempt: async (): Promise<SyntheticResponse> => ({
      // @ts-expect-error  what it counts is the ledger's to say
      response: { blocks: [], finish: { type: "finish", reason: "stop" }, usage: { output: 1 } },
    }),
  }),
});
export const misspeltHook = defineMiddleware({
  ...x,
  // @ts-expect-error  no such hook
  setup: () => ({ admitt() {} }),
});
export const retries = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  next takes nothing: another candidate is the host's to choose
    attempt: (call, next) => next(call),
  }),
});
export const ownKind = defineMiddleware({
  ...x,
  setup: () => ({
    // @ts-expect-error  kinds of errors are a closed set
    route: (list: readonly Candidate[]) =>
      list.map((candidate) => ({ candidate, kind: "teapot", code: "x", message: "x" })),
  }),
});

// ── what is handed out is read-only ──
export function hands(
  recorded: RecordedResponse,
  reply: UpstreamResponse,
  exchange: Exchange,
  call: Call,
  out: Outgoing,
  arrival: RequestHead,
  candidate: Candidate,
): void {
  // @ts-expect-error  a recording says whether it is a stream, yes or no
  recorded.stream = "sse";
  // @ts-expect-error  limits are told, not set
  reply.limits.push({ by: "gateway", unit: "requests", left: 0 });
  // @ts-expect-error  edits go through prepare
  exchange.body["model"] = "y";
  // @ts-expect-error  the head has no body
  void arrival.body;
  // @ts-expect-error  a key's identity is changed by identify alone
  exchange.identity = undefined;
  // @ts-expect-error  nor how private
  exchange.privacy = "off";
  // @ts-expect-error  headers are as they came
  exchange.headers["x"] = "y";
  if (exchange.request.operation === "chat") {
    // @ts-expect-error  a request is rewritten, not changed
    exchange.request.turns = [];
    // @ts-expect-error  nor in its lists
    exchange.request.turns.push({ role: "user", blocks: [] });
  }
  // @ts-expect-error  a call knows the credential's name, not its value
  void call.credential.api_key;
  // @ts-expect-error  the policy is computed by the host
  candidate.policy = {};
  is<Same<typeof candidate.cooldown, CandidateCooldown | undefined>>();
  is<Same<typeof call.weight, number>>();
  // @ts-expect-error  what rests is the host's to say
  candidate.cooldown = undefined;
  // @ts-expect-error  a size is measured
  exchange.inputSize.tokens = 0;
  // @ts-expect-error  the name of the model is part of the candidate
  candidate.model = "y";
  // @ts-expect-error  not a level of privacy
  arrival.requirePrivacy("paranoid");
  // @ts-expect-error  a label is a text
  arrival.addLabel("size", 3);
  // @ts-expect-error  the method is the protocol's
  out.method = "PUT";
  // @ts-expect-error  a date is not JSON
  out.set("when", new Date());
}

// ── errors ──
export function errors(error: unknown): void {
  is<Same<ReturnType<typeof fail>, never>>();
  is<Same<ReturnType<typeof createFault>, Error>>();
  is<Same<Parameters<typeof createFault>, Parameters<typeof fail>>>();
  is<Same<ReturnType<typeof getFault>, Fault | undefined>>();
  const value: number = Math.random() > 2 ? fail("internal", "Never.") : 1;
  fail("mismatch", "Not what was asked before under this name.");
  fail("quota", "No more.", { code: "quota_exceeded", retryAfterMs: value, details: { left: 0 } });
  // @ts-expect-error  a closed set
  fail("teapot", "No.");
  // @ts-expect-error  an error says what happened
  fail("invalid");
  // @ts-expect-error  and what is made without being thrown says it too
  void createFault("invalid");
  // @ts-expect-error  it is made, and not thrown: nothing ends here
  const never: number = createFault("internal", "Never.");
  void never;
  // @ts-expect-error  a status is decided by the kind alone
  fail("invalid", "No.", { status: 418 });
  const kind = getFault(error)?.kind;
  is<Same<typeof kind, ErrorKind | undefined>>();
}

// ── routes ──
export const routes = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    routes: [
      { method: "POST", path: ["/v1/x", "/x"], actionType: "generate" },
      {
        method: "GET",
        path: "/v1/list",
        allowUnauthenticated: true,
        handle: () => ({ status: 200, body: [] }),
      },
      {
        method: "POST",
        path: "/v1/models/**:target",
        actionType: "generate",
        readInput(arrival, body) {
          // @ts-expect-error  bodies are read-only here too
          body["model"] = "y";
          // @ts-expect-error  a parameter that is not in the path is no string
          const missing: number = arrival.params["target"];
          return { model: String(missing), stream: true };
        },
      },
    ],
  }),
});
export const proved = defineMiddleware({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup: () => ({
    admit(x) {
      // @ts-expect-error  a client may have proved nothing
      const all: readonly string[] = x.certificate.names;
      // @ts-expect-error  a certificate need not name its subject
      const name: string = x.certificate?.commonName;
      // @ts-expect-error  what was proved is read-only
      if (x.certificate) x.certificate.expiresAt = 0;
      const [first] = x.certificate?.names ?? all;
      if (first !== undefined) x.identify({ id: `cert:${first}`, name });
    },
  }),
});
export const addressed = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    routes: [{ method: "POST", path: "/x", actionType: "generate" }],
    extractCredential(headers, query) {
      // @ts-expect-error  a look at secrets changes nothing
      query.set("key", "x");
      // @ts-expect-error  a word of the query may be absent
      const key: string = query.get("key");
      return headers.authorization ?? key;
    },
  }),
});
export const neither = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  a route either walks or serves
  setup: () => ({ routes: [{ method: "GET", path: "/x" }] }),
});
export const noOp = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  no such op
  setup: () => ({ routes: [{ method: "POST", path: "/x", actionType: "generates" as const }] }),
});

// ── the vocabulary ──
export const request: ChatRequest = {
  operation: "chat",
  model: "m",
  stream: false,
  instructions: [],
  turns: [
    { role: "user", blocks: [{ type: "text", text: "Hi", cache: undefined }], name: undefined },
  ],
  tools: [],
  // What is constructed may hold undefined.
  output: { maxTokens: undefined, format: undefined },
  sampling: { seed: undefined },
  reasoning: { mode: "auto" },
  state: {},
  rest: {},
  ext: {},
};
// @ts-expect-error  no such role
export const role: ChatRequest["turns"][number] = { role: "function", blocks: [] };
// @ts-expect-error  a media says where its bytes are
export const media: Media = { mime: "image/png" };
// @ts-expect-error  no such unit
export const usage: ModelEvent = { type: "usage", usage: { input_tokens: 1 } };
