// What an author may write, what is inferred from it, and what must not compile.
import {
  apiKeySchema,
  defineFrontend,
  defineMiddleware,
  defineObserver,
  defineProvider,
  defineStore,
  type Candidate,
  type Definition,
  type Protocol,
  type Store,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

declare const protocol: Protocol<"chat">;
declare const store: Store;

// ── options are inferred from their schema ──
export const options = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["region"],
    properties: {
      region: { type: "string", enum: ["eu", "us"], description: "Where" },
      retries: { type: "integer", default: 2, description: "How often" },
      tags: { type: "array", items: { type: "string" }, description: "Labels" },
      nested: {
        type: "object",
        additionalProperties: false,
        properties: { deep: { type: "boolean", default: false, description: "How" } },
        description: "More",
      },
    },
  },
  check(o) {
    is<Same<typeof o.region, "eu" | "us">>();
    return [];
  },
  setup(o) {
    is<Same<typeof o.region, "eu" | "us">>();
    // A default fills in: the option is there, whatever the file says.
    is<Same<typeof o.retries, number>>();
    is<Same<typeof o.tags, string[] | undefined>>();
    is<Same<NonNullable<typeof o.nested>["deep"], boolean>>();
    // @ts-expect-error  no such option
    void o.regoin;
    // @ts-expect-error  a number is no string
    o.retries.trim();
    // @ts-expect-error  not among the values
    void (o.region === "asia");
    return { endpoints: [] };
  },
});

export const none = defineMiddleware({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup(o) {
    // @ts-expect-error  a plugin without options is given none
    void o.anything;
    return {};
  },
});

export const open = defineMiddleware({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  // @ts-expect-error  an open schema: a typo would pass in silence
  options: { type: "object", properties: {} },
  setup: () => ({}),
});

export const opened = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  the same, said aloud
  options: { type: "object", additionalProperties: true, properties: {} },
  setup: () => ({ routes: [] }),
});

export const noObject = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  options are an object
  options: { type: "string", additionalProperties: false },
  setup: () => store,
});

// ── every definition says what it is ──
// @ts-expect-error  the contract's version is a number that exists
export const api = defineStore({ api: 2, name: "x", summary: "x", setup: () => store });
// @ts-expect-error  without a summary no operator knows what it is for
export const silent = defineStore({ api: 1, name: "x", setup: () => store });
export const unstable = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  not a word for it
  stability: "alpha",
  setup: () => store,
});
export const half = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  a store does all that a store does
  setup: () => ({ lease: { durationMs: 1, heartbeatMs: 1 } }),
});
// @ts-expect-error  a middleware must say where content goes
export const secretive = defineMiddleware({ api: 1, name: "x", summary: "x", setup: () => ({}) });
// @ts-expect-error  a frontend has routes
export const unreachable = defineFrontend({ api: 1, name: "x", summary: "x", setup: () => ({}) });
// @ts-expect-error  a provider has endpoints
export const nowhere = defineProvider({ api: 1, name: "x", summary: "x", setup: () => ({}) });

// ── any definition is a definition, and only a definition is ──
export const all: Definition[] = [
  options,
  none,
  defineStore({ api: 1, name: "x", summary: "x", setup: () => store }),
];
// @ts-expect-error  what no define made has no brand
export const unbranded: Definition = { api: 1, name: "x", summary: "x", setup: () => store };

// ── what a plugin needs is declared, and what it reads of it is typed ──
export const needy = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { ca: { type: "string", description: "A certificate" } },
  },
  needs: {
    metadata: true,
    env: ["AWS_REGION"],
    files: ({ ca }) => {
      is<Same<typeof ca, string | undefined>>();
      return ca === undefined ? [] : [ca];
    },
  },
  async setup({ ca }, ctx) {
    is<Same<ReturnType<typeof ctx.env>, string | undefined>>();
    const text: Buffer | undefined = ca === undefined ? undefined : await ctx.readFile(ca);
    void text;
    // @ts-expect-error  a variable is read by its name
    ctx.env();
    return { endpoints: [] };
  },
});
export const needless = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  it is declared or it is not
  needs: { metadata: false },
  setup: () => store,
});
export const oneNeed = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  variables are a list
  needs: { env: "HOME" },
  setup: () => store,
});
export const noNeed = defineStore({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  no such need
  needs: { exec: true },
  setup: () => store,
});

// ── credentials ──
export const keyed = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  credential: apiKeySchema,
  setup: () => ({
    endpoints: [
      { protocol, base: "https://x", auth: { header: "x-api-key", field: "api_key" } },
      { protocol, base: "https://x", auth: "none" },
      {
        protocol,
        base: "https://x",
        async auth(request, credential) {
          is<Same<typeof credential.api_key, string>>();
          // @ts-expect-error  what is signed is what leaves: it cannot be changed here
          request.body = null;
          return { authorization: credential.api_key };
        },
      },
    ],
  }),
});
export const token = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  credential: apiKeySchema,
  setup: () => ({
    endpoints: [
      {
        protocol,
        base: "https://x",
        auth: {
          async sign(request, credential) {
            is<Same<typeof credential.api_key, string>>();
            return { authorization: `${request.method} ${credential.api_key}` };
          },
          renewToken(refusal, credential) {
            is<Same<typeof refusal.body, Buffer>>();
            is<Same<typeof credential.api_key, string>>();
            // @ts-expect-error  what the provider said is read, not changed
            refusal.status = 200;
            return refusal.status === 401;
          },
        },
      },
      {
        protocol,
        base: "https://x",
        // @ts-expect-error  without a word on what is refused it is a function
        auth: { sign: () => ({}) },
      },
      {
        protocol,
        base: "https://x",
        // @ts-expect-error  a scheme that signs has no header of its own beside it
        auth: { sign: () => ({}), renewToken: () => false, header: "x-api-key", field: "api_key" },
      },
      {
        protocol,
        base: "https://x",
        // @ts-expect-error  whether it is over is yes or no
        auth: { sign: () => ({}), renewToken: () => "expired" },
      },
    ],
  }),
});
export const misspelt = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  credential: apiKeySchema,
  setup: () => ({
    // @ts-expect-error  no such credential field
    endpoints: [{ protocol, base: "https://x", auth: { header: "x-api-key", field: "apikey" } }],
  }),
});
export const keyless = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    // @ts-expect-error  no credential was declared
    endpoints: [{ protocol, base: "https://x", auth: { header: "x-api-key", field: "api_key" } }],
  }),
});
export const baseless = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  a wire endpoint says where it is
  setup: () => ({ endpoints: [{ protocol, auth: "none" as const }] }),
});
export const twoCredentials = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  credential: {
    type: "object",
    additionalProperties: false,
    required: ["id"],
    properties: {
      id: { type: "string", description: "Who" },
      secret: { type: "string", "x-secret": true, description: "What proves it" },
    },
  },
  setup: () => ({
    endpoints: [
      {
        operation: "chat",
        async *run(_request, _call, credential) {
          is<Same<typeof credential.id, string>>();
          is<Same<typeof credential.secret, string | undefined>>();
          yield { type: "start" };
        },
      },
    ],
  }),
});
export const openCredential = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  // @ts-expect-error  a credential's schema is closed too
  credential: { type: "object", properties: { api_key: { type: "string" } } },
  setup: () => ({ endpoints: [] }),
});

// ── native endpoints are typed by what they make ──
export const native = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    endpoints: [
      {
        operation: "image",
        async *run(request) {
          is<Same<typeof request.prompt, string>>();
          // @ts-expect-error  an image request has no turns
          void request.turns;
          yield { type: "usage", usage: { images: 1 }, costNano: 40_000_000n };
        },
      },
      // @ts-expect-error  no such event
      {
        operation: "chat",
        async *run() {
          yield { type: "begin" };
        },
      },
      // @ts-expect-error  money is counted in whole nano-dollars
      {
        operation: "chat",
        async *run() {
          yield { type: "usage", usage: {}, costNano: 0.5 };
        },
      },
      // @ts-expect-error  events come one by one
      {
        operation: "chat",
        run: async () => [{ type: "start" }],
      },
    ],
  }),
});

// ── a setup may take its time, and may bring commands ──
export const slow = defineMiddleware({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup: async (_options, ctx) => {
    ctx.runEvery(1000, async (signal) => signal.throwIfAborted());
    const { rejections, cooldowns, inFlight, inFlightByFrontend } = await ctx.stats();
    is<Same<typeof inFlight, number>>();
    is<Same<(typeof inFlightByFrontend)[string], number>>();
    // @ts-expect-error  what was read is not changed
    inFlightByFrontend["messages"] = 0;
    is<Same<(typeof cooldowns)[number]["until"], number>>();
    // @ts-expect-error  what was read is not changed
    rejections["tls"] = 0;
    // @ts-expect-error  only what has an end can be owned
    ctx.own({ close() {} });
    const quote = (candidate: Candidate) => ctx.quoteCost(candidate, { input: 1, output: 2 });
    is<Same<ReturnType<typeof quote>, bigint | null>>();
    // @ts-expect-error  no such unit
    const misspelt = (candidate: Candidate) => ctx.quoteCost(candidate, { input_tokens: 1 });
    void misspelt;
    // @ts-expect-error  the context is the host's
    ctx.id = "y";
    return { commands: { count: { summary: "Counts", run: async () => 1 } } };
  },
});

// ── an observer is told, and changes nothing ──
export const observer = defineObserver({
  api: 1,
  name: "counts",
  summary: "Counts requests",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { by: { type: "string", enum: ["key", "model"], description: "By what" } },
  },
  setup({ by }, ctx) {
    is<Same<typeof by, "key" | "model" | undefined>>();
    const counts = ctx.shared("counts", () => new Map<string, bigint>());
    return {
      onRequests(batch) {
        for (const { key, model, calls, fault } of batch) {
          const cost = calls.reduce((sum, { costNano }) => sum + (costNano ?? 0n), 0n);
          const name = `${by === "key" ? (key ?? "") : model} ${fault?.kind ?? ""}`;
          counts.set(name, (counts.get(name) ?? 0n) + cost);
        }
      },
      onRejected(batch) {
        for (const { code, method, listener } of batch) {
          is<Same<typeof method, string | undefined>>();
          is<Same<typeof listener, "public" | "admin">>();
          counts.set(code, (counts.get(code) ?? 0n) + 1n);
        }
        // @ts-expect-error A path may be anything that a client likes: it is not here.
        void batch[0]?.path;
        // @ts-expect-error Nothing that it is handed may be changed.
        batch[0]!.status = 200;
      },
      async onEvent(notice) {
        if (notice.type === "budget_threshold_reached") {
          is<Same<typeof notice.used, bigint>>();
          is<Same<typeof notice.percent, 50 | 80 | 95 | 100>>();
          // @ts-expect-error  a key's name may be a person
          void notice.name;
        }
        // @ts-expect-error  keys are not shown
        if (notice.type === "key" && notice.change === "shown") return;
        if (notice.type === "cooldown_started") is<Same<typeof notice.model, string | null>>();
        if (notice.type === "records_dropped") is<Same<typeof notice.records, number>>();
      },
      commands: {
        counts: { summary: "What was counted", run: async () => [...counts.keys()] },
      },
    };
  },
});
is<Same<(typeof observer)["~tollgate"], "observer">>();
const anObserver: Definition = observer;
void anObserver;
const plain = { api: 1, name: "x", summary: "x" } as const;
// @ts-expect-error It says where it sends what it is told.
defineObserver({ ...plain, setup: () => ({}) });
// @ts-expect-error It has no hooks: it changes nothing.
defineObserver({ ...plain, sends: "nowhere", setup: () => ({ settle() {} }) });
defineObserver({
  ...plain,
  sends: "nowhere",
  setup: () => ({
    onRequests(batch) {
      // @ts-expect-error Nothing that it is handed may be changed.
      batch[0]!.status = 200;
      // @ts-expect-error Nor the list.
      batch.push(batch[0]!);
      // @ts-expect-error Words of an error may quote a prompt: they are not here.
      return void batch[0]?.fault?.message;
    },
    onEvent(notice) {
      // @ts-expect-error What a notice has depends on its type.
      return void notice.generation;
    },
  }),
});
