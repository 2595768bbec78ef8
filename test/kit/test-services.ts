// A generation on a loopback port, from definitions in the test: without a file, a loader, or a
// store other than a journal.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInMemoryModelLists } from "../../src/catalog/model-lists.ts";
import type {
  AccountConfig,
  GatewayConfig,
  MiddlewareConfig,
  ModelRoute,
  ProviderConfig,
} from "../../src/config/gateway-config.ts";
import {
  createNodeHandler,
  createExactRouteHandler,
  createHealthResponder,
} from "../../src/runtime/http/h3-adapter.ts";
import { createRoutes } from "../../src/runtime/http/generation-app.ts";
import { buildGeneration } from "../../src/runtime/generation/build-generation.ts";
import { createServices, type Services } from "../../src/runtime/services.ts";
import { BOUNDS } from "../../src/lib/bounds.ts";
import { SecretMask } from "../../src/lib/log/secret-mask.ts";
import { LifetimeScope, SharedResources } from "../../src/lib/lifetime-scope.ts";
import { HookBreakers } from "../../src/pipeline/hooks/hook-breaker.ts";
import { TargetHealth } from "../../src/pipeline/routing/target-health.ts";
import type { AdmissionLimits } from "../../src/pipeline/admission/admission-queue.ts";
import {
  defineFrontend,
  defineMiddleware,
  defineProvider,
  type Context,
  type StoreCommand,
  type ErrorKind,
  type Hooks,
  type PolicyException,
  type Identity,
  type Protocol,
  type Provider,
  type Reserve,
  type Settle,
  type CommandResult,
  type PipelineRoute,
} from "tollgate/plugin";
import { turnEventLoop } from "./wait.ts";

export const TIMEOUTS = {
  connectMs: 2_000,
  firstByteMs: 20_000,
  idleMs: 20_000,
  totalMs: 40_000,
  classes: new Map(),
};

const DEFAULT_BOUNDS: GatewayConfig["bounds"] = {
  inFlightBytes: BOUNDS.inFlight.max,
  jsonValues: BOUNDS.jsonValues.max,
  responseBytes: BOUNDS.response.max,
  connections: BOUNDS.connections.max,
  connectionsPerAddress: BOUNDS.connectionsPerAddress.max,
  socketMessageBytes: BOUNDS.socketMessage.max,
};

const TOLERANT: Pick<MiddlewareConfig, "timeoutMs" | "onError"> = {
  timeoutMs: 30_000,
  onError: "reject",
};

export interface TestServicesOptions {
  /** Default: 15 s. */
  pingIntervalMs?: number;
  frontend?: Protocol;
  providers: Record<
    string,
    Provider<any> & Partial<ProviderConfig> & { exceptions?: readonly PolicyException[] }
  >;
  hooks?: (Hooks &
    Partial<Pick<MiddlewareConfig, "scope" | "timeoutMs" | "onError">> & {
      id?: string;
      sends?: any;
      /** Exposes the context that its setup receives. */
      lent?: (ctx: Context) => void;
    })[];
  models?: Record<string, string[]>;
  /** Routing strategy. Default: the listed order. */
  pick?: ModelRoute["pick"];
  /** Weights of the candidates of `models`. */
  weights?: Record<string, number>;
  /** Hedge setting of the routes of `models`. */
  hedge?: ModelRoute["hedge"];
  /** Failures after which the routes of `models` fall back. */
  on?: readonly ErrorKind[];
  /** Attempts per target. Default: 1, because most tests count calls. */
  attempts?: GatewayConfig["retries"];
  /** Reasons for which `when:` excludes a provider. */
  unmounted?: Record<string, string>;
  accounts?: Record<string, Partial<AccountConfig>>;
  strict?: boolean;
  /** The client's key. Default: a key that may use everything. */
  identity?: Omit<Identity, "id">;
  read?: PipelineRoute["readInput"];
  /** Body type of the route. Default: JSON. */
  body?: PipelineRoute["body"];
  bodyBytes?: number;
  /** Maximum number of bytes in memory. */
  room?: number;
  /** Maximum number of concurrent calls. */
  overload?: AdmissionLimits;
  bounds?: Partial<GatewayConfig["bounds"]>;
  verdict?: (command: Reserve) => CommandResult;
  /** Resolves when a settle is durable. Default: in the next turn of the event loop. */
  settling?: () => Promise<void>;
  /** Replaces the connections to providers. */
  pools?: Services["pools"];
}

const account = (id: string, said: Partial<AccountConfig>): AccountConfig => ({
  id,
  parent: undefined,
  name: undefined,
  limits: [],
  models: undefined,
  frontends: undefined,
  privacy: undefined,
  labels: {},
  ...said,
});

export async function startTestServices(of: TestServicesOptions) {
  const journal: (StoreCommand & { durable?: boolean })[] = [];
  const lines: { level: string; fields: any; message: string }[] = [];
  const say = (level: string) => (fields: any, message: string) =>
    void lines.push({ level, fields, message });
  const log: any = {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
    child: () => log,
    secrets() {},
    flush() {},
  };
  const notices: { type: "quarantined" | "released"; plugin: string; hook: string }[] = [];
  const scope = new LifetimeScope();
  const house: Services = createServices(
    {
      overload: of.overload ?? { maxConcurrent: 10_000, maxQueueWaitMs: 1_000 },
      bounds: { inFlightBytes: of.room ?? BOUNDS.inFlight.max },
      proxy: undefined,
    },
    scope,
    {
      log,
      mask: new SecretMask(),
      shared: new SharedResources(),
      ...(of.pools && { pools: of.pools }),
      targetHealth: new TargetHealth(),
      hookBreakers: new HookBreakers({
        onQuarantined: (of) => void notices.push({ type: "quarantined", ...of }),
        onReleased: (of) => void notices.push({ type: "released", ...of }),
      }),
      modelLists: createInMemoryModelLists(),
      imageFiles: {
        store: async () => "http://pictures.test/1.png",
        fetch: async () => ({ bytes: Buffer.from("x"), contentType: "image/png" }),
      },
      stateDir: "",
      store: {} as never,
      keyCache: { find: async () => undefined, invalidate() {} },
      ledgerQueue: {
        isHealthy: true,
        async reserve(c: Reserve & { at: number }) {
          await new Promise((r) => setImmediate(r));
          journal.push(c);
          return of.verdict?.(c) ?? { ok: true };
        },
        async settle(c: Settle & { at: number }) {
          const row = { ...c, durable: false };
          journal.push(row);
          await (of.settling?.() ?? turnEventLoop(1));
          row.durable = true;
        },
        progress(c: any) {
          journal.push(c);
        },
      },
    } as never,
  );
  const mounted = (id: string, definition: any, more: object = {}) => ({
    id,
    use: id,
    from: "built-in",
    options: {},
    definition,
    ...more,
  });
  const config = {
    file: "/gateway.yaml",
    workers: 1,
    strict: of.strict ?? false,
    responseHeaders: [],
    retries: of.attempts ?? { perTarget: 1, total: 5 },
    maxBodyBytes: of.bodyBytes ?? 1 << 20,
    bounds: { ...DEFAULT_BOUNDS, ...of.bounds },
    log: { level: "info", slowRequestMs: 60_000 },
    timeouts: TIMEOUTS,
    writeTimeoutMs: 60_000,
    pingIntervalMs: of.pingIntervalMs ?? 15_000,
    overload: of.overload ?? { maxConcurrent: 10_000, maxQueueWaitMs: 1_000 },
    scopes: new Map(),
    accounts: new Map(
      Object.entries(of.accounts ?? {}).map(([id, said]) => [id, account(id, said)]),
    ),
    unmountedProviders: new Map(Object.entries(of.unmounted ?? {})),
    models: new Map(
      Object.entries(of.models ?? {}).map(([name, candidates]) => [
        name,
        {
          name,
          candidates,
          weights: new Map(Object.entries(of.weights ?? {})),
          pick: of.pick ?? "ordered",
          hedge: of.hedge,
          fallbackOn: of.on ?? [
            "overloaded",
            "rate_limited",
            "timeout",
            "upstream",
            "upstream_auth",
          ],
        },
      ]),
    ),
    observers: [],
    frontends: [
      mounted(
        "frontends.toy",
        defineFrontend({
          api: 1,
          name: "toy",
          summary: "toy",
          setup: () => ({
            protocol: of.frontend!,
            routes: [
              {
                method: "POST",
                path: "/toy",
                actionType: "generate",
                ...(of.read && { readInput: of.read }),
                ...(of.body && { body: of.body }),
              },
              { method: "POST", path: "/toy/count", actionType: "count" },
              ...("kept" in (of.frontend!.client?.paths ?? {})
                ? [
                    {
                      method: "POST",
                      path: "/toy/kept",
                      actionType: "relay",
                      action: "kept",
                    } as const,
                  ]
                : []),
            ],
          }),
        }),
      ),
    ],
    middleware: [
      mounted(
        "middleware.door",
        defineMiddleware({
          api: 1,
          name: "door",
          summary: "door",
          sends: "nowhere",
          setup: () => ({ admit: (x) => x.identify({ id: "k1", ...of.identity }) }),
        }),
        TOLERANT,
      ),
      ...(of.hooks ?? []).map(({ id, scope: only, sends, timeoutMs, onError, lent, ...hooks }, i) =>
        mounted(
          `middleware.${id ?? `m${i}`}`,
          defineMiddleware({
            api: 1,
            name: "m",
            summary: "m",
            sends: sends ?? "nowhere",
            setup: (_options, ctx) => {
              lent?.(ctx);
              return hooks;
            },
          }),
          {
            scope: only,
            timeoutMs: timeoutMs ?? TOLERANT.timeoutMs,
            onError: onError ?? TOLERANT.onError,
          },
        ),
      ),
    ],
    providers: new Map(
      Object.entries(of.providers).map(
        ([name, { endpoints, listModels, checkReady, exceptions, ...more }]) => [
          name,
          mounted(
            `providers.${name}`,
            defineProvider({
              api: 1,
              name,
              summary: name,
              ...(exceptions && { dataPolicyExceptions: exceptions }),
              setup: () => ({
                endpoints,
                ...(listModels && { listModels }),
                ...(checkReady && { checkReady }),
              }),
            }),
            {
              name,
              credentials: [
                {
                  name: "default",
                  fields: { api_key: `secret-${name}` },
                  weight: 1,
                  models: undefined,
                  zdr: undefined,
                },
              ],
              trustPolicy: true,
              stateMode: "reject",
              zdrAllowedFields: [],
              onDisconnect: "cancel",
              requireReady: false,
              timeouts: TIMEOUTS,
              facts: new Map(),
              ...more,
            },
          ),
        ],
      ),
    ),
  } as unknown as GatewayConfig;
  const built = await buildGeneration({
    number: 1,
    config,
    services: house,
    locate: (path, words) => ({ ...words, file: "", line: 1, column: 1, path }),
  });
  if ("problems" in built) throw new Error(JSON.stringify(built.problems));
  const server = createServer(
    createNodeHandler({
      exactRoute: createExactRouteHandler(built.gen, built.frontends),
      answerHealth: createHealthResponder(() => ({ ready: true, state: "ready" }), false),
      loadRoutes: () => createRoutes({ gen: built.gen, frontends: built.frontends }),
    }),
  );
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    journal,
    log: lines,
    /** State of hooks in quarantine. */
    notices,
    built,
    house,
    ask: (
      body: object,
      init: { headers?: Record<string, string>; signal?: AbortSignal; path?: string } = {},
    ) =>
      fetch(`${url}${init.path ?? "/toy"}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer x", ...init.headers },
        body: JSON.stringify(body),
        ...(init.signal && { signal: init.signal }),
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await built.retire();
      await scope[Symbol.asyncDispose]();
    },
  };
}

/** A small upstream that records its requests. */
export async function startBackend(
  answer: (req: IncomingMessage & { body: string; n: number }, res: ServerResponse) => void,
) {
  const asked: {
    url: string;
    headers: IncomingMessage["headers"];
    body: string;
    aborted: boolean;
  }[] = [];
  const server = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (c: Buffer) => parts.push(c));
    req.on("end", () => {
      const one = {
        url: req.url!,
        headers: req.headers,
        body: Buffer.concat(parts).toString(),
        aborted: false,
      };
      asked.push(one);
      res.on("close", () => {
        if (!res.writableFinished) one.aborted = true;
      });
      answer(Object.assign(req, { body: one.body, n: asked.length }), res);
    });
  });
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
