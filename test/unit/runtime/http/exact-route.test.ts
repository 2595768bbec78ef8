// The exact-path shortcut finds the same route as a search.
import fc from "fast-check";
import { H3 } from "h3";
import { expect, it } from "vitest";
import {
  createNodeHandler,
  createExactRouteLookup,
  createHealthResponder,
  type ExactRouteHandler,
} from "../../../../src/runtime/http/h3-adapter.ts";
import { createAppHandler, createRoutes } from "../../../../src/runtime/http/generation-app.ts";
import { listen } from "../../../../src/runtime/http/listener.ts";

const routed = (...routes: readonly (readonly [string, string | readonly string[]])[]) => ({
  routes: routes.map(([method, path]) => ({ method, path })),
});
const FRONTENDS = [
  routed(["POST", ["/v1/chat", "/chat"]], ["GET", "/v1/models"], ["GET", "/v1/models/:id"]),
  routed(["POST", "/both"], ["POST", "/v1beta/**"]),
  routed(["POST", "/both"], ["GET", "/both"]),
  routed(["GET", ["/mcp", "/mcp/:name"]], ["GET", ["/a/:b/c", "/a/:b"]]),
  // Two routes match the paths of each pair.
  routed(
    ["OPTIONS", ["/x/:one", "/:two/y"]],
    ["DELETE", ["/d/:one", "/d/**"]],
    ["PUT", "/p/:a/:b"],
  ),
  routed(["PATCH", "/q/:one"], ["PATCH", "/q/:two"]),
] as never;

it.each([
  ["POST /v1/chat", "/v1/chat"],
  ["POST /chat?a=/v1/models", "/chat"],
  ["GET /v1/models", "/v1/models"],
  ["GET /both", "/both"],
  // h3 handles the rest.
  ["POST /both", undefined],
  ["GET /v1/chat", undefined],
  ["HEAD /v1/models", undefined],
  ["GET /v1/models/one", "/v1/models/:id"],
  ["GET /v1/models/one?b=/c", "/v1/models/:id"],
  ["GET /mcp", "/mcp"],
  ["GET /mcp/a.b~c-d", "/mcp/:name"],
  ["GET /a/b", "/a/:b"],
  ["GET /mcp/", undefined],
  ["GET /mcp/..", undefined],
  ["GET /mcp/.", undefined],
  ["GET /mcp/a%20b", undefined],
  ["GET /mcp/a/b", undefined],
  ["OPTIONS /x/y", undefined],
  ["OPTIONS /x/z", undefined],
  ["DELETE /d/one", undefined],
  ["PUT /p/one/two", undefined],
  ["PATCH /q/one", undefined],
  ["GET /v1/models/:id", undefined],
  ["POST /v1beta/**", undefined],
  ["POST /v1/chat/", undefined],
  ["POST //v1/chat", undefined],
  ["POST /v1%2Fchat", undefined],
  ["POST /V1/chat", undefined],
  ["POST http://here/v1/chat", undefined],
])("%s", (line, path) => {
  const [method, url] = line.split(" ");
  expect(createExactRouteLookup(FRONTENDS)(method!, url!)?.mounted.path).toBe(path);
});

it("equals h3's route for the same request line", () => {
  const lines = ["POST /v1/chat", "POST /chat", "GET /v1/models", "GET /both", "GET /mcp/one"];
  for (const line of [...lines, "GET /v1/models/a.b", "GET /a/b?c=d"]) {
    const [method, url] = line.split(" ");
    const app = new H3();
    const found: unknown[] = [];
    for (const { routes } of FRONTENDS as ReturnType<typeof routed>[])
      for (const route of routes)
        for (const path of [route.path].flat())
          app.on(route.method as "GET", path, ({ context }) => {
            found.push([path, context.params ?? {}]);
          });
    void app.request(url!, { method: method! });
    const { mounted, params } = createExactRouteLookup(FRONTENDS)(method!, url!)!;
    expect(found, line).toEqual([[mounted.path, params]]);
  }
});

const LITERALS = ["files", "healthz", "readyz", ".tollgate", "peer", "a"];
const segment = fc.constantFrom(...LITERALS, ":");
/** Returns a path, in which each parameter has another name. */
const toPath = (all: readonly string[]) =>
  `/${all.map((one, at) => (one === ":" ? `:p${at}` : one)).join("/")}`;
const routePath = fc.oneof(
  fc.constantFrom("/files/:x", "/:x", "/:x/:y", "/.tollgate/peer"),
  fc.array(segment, { minLength: 1, maxLength: 3 }).map(toPath),
  fc.array(segment, { maxLength: 2 }).map((all) => toPath([...all, "**"])),
);
const route = fc.tuple(fc.constantFrom("GET", "HEAD", "POST"), routePath);
const requestPath = fc.oneof(
  fc.constantFrom("/files/one.png", "/healthz", "/.tollgate/peer"),
  fc
    .array(fc.constantFrom(...LITERALS, "health", "one.png"), { maxLength: 3 })
    .map((all) => `/${all.join("/")}`),
);

/** Routes of the gateway. A plugin's literal route of a health check replaces it. */
const FILES = [
  ["GET", "/files/:name"],
  ["HEAD", "/files/:name"],
  ["POST", "/.tollgate/peer"],
] as const;
const HEALTH = ["GET", "HEAD"].flatMap((method) =>
  ["/", "/healthz", "/health", "/readyz"].map((path) => [method, path] as const),
);

it("law: the shortcut finds the route that h3 finds, with the routes of the gateway itself", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(route, { minLength: 1, maxLength: 5, selector: (one) => one.join(" ") }),
      fc.constantFrom("GET", "HEAD", "POST"),
      requestPath,
      async (routes, method, path) => {
        const found = createExactRouteLookup([routed(...routes)] as never)(method, path);
        if (!found) return;
        const app = new H3();
        const reached: unknown[] = [];
        const all = [
          ...FILES.map((one) => ["gateway", one] as const),
          ...routes.map((one) => ["plugin", one] as const),
          ...HEALTH.map((one) => ["gateway", one] as const),
        ];
        for (const [owner, [own, where]] of all)
          app.on(own as "GET", where, ({ context }) => {
            reached.push([owner, where, context.params ?? {}]);
            return "";
          });
        await app.request(path, { method });
        expect(reached).toEqual([["plugin", found.mounted.path, found.params]]);
      },
    ),
    { numRuns: 500 },
  );
});

it("image URLs and health checks are answered with a plugin's route for the same paths", async () => {
  const frontends = [routed(["GET", ["/files/:id", "/:page"]])] as never;
  const find = createExactRouteLookup(frontends);
  const handler = createNodeHandler({
    exactRoute: (req, res) =>
      find(req.method!, req.url!) && Promise.resolve(void res.end("the plugin's")),
    answerHealth: createHealthResponder(() => ({ ready: true, state: "ready" }), false),
    loadRoutes: () =>
      createRoutes({
        gen: {} as never,
        frontends,
        files: {
          serve: async (name, query) => ({
            status: 200,
            body: Buffer.from(`${name} ${query.get("s")}`),
            headers: {},
          }),
        },
      }),
  });
  const { url, close } = await listen({ host: "127.0.0.1", port: 0, handler });
  try {
    const read = async (path: string) => (await fetch(url + path)).text();
    expect(await read("/files/one.png?e=1&s=signature")).toBe("one.png signature");
    expect(await read("/readyz")).toBe('{"status":"ready"}');
  } finally {
    await close(0);
  }
});

async function answer(straight: ExactRouteHandler): Promise<[number, string]> {
  const app = new H3({ silent: true }).get("/x", () => "searched");
  const handler = createNodeHandler({
    exactRoute: straight,
    loadRoutes: () => createAppHandler(app),
  });
  const { url, close } = await listen({ host: "127.0.0.1", port: 0, handler });
  try {
    const res = await fetch(`${url}/x`);
    return [res.status, await res.text()];
  } finally {
    await close(0);
  }
}

it("is tried before h3, and errors are handled as by h3", async () => {
  expect(await answer(() => undefined)).toEqual([200, "searched"]);
  expect(await answer(async (_req, res) => void res.end("straight"))).toEqual([200, "straight"]);
  expect(await answer(() => Promise.reject(new Error("later")))).toEqual([500, ""]);
  const atOnce = () => {
    throw new Error("at once");
  };
  expect(await answer(atOnce)).toEqual([500, ""]);
});

it("answers health checks before it loads h3, and everything else after", async () => {
  let loads = 0;
  const handler = createNodeHandler({
    answerHealth: createHealthResponder(() => ({ ready: false, state: "starting" }), true),
    loadRoutes: async () => {
      loads += 1;
      return async (req, res) => void res.writeHead(404).end(req.url);
    },
  });
  const { url, close } = await listen({ host: "127.0.0.1", port: 0, handler });
  const ask = async (path: string, method = "GET") => {
    const res = await fetch(url + path, { method });
    return [res.status, await res.text()];
  };
  try {
    expect(await ask("/health")).toEqual([200, '{"status":"ok"}']);
    expect(await ask("/healthz/?now")).toEqual([200, '{"status":"ok"}']);
    expect(await ask("/readyz")).toEqual([503, '{"status":"starting"}']);
    expect(await ask("/readyz", "HEAD")).toEqual([503, ""]);
    expect(loads).toBe(0);
    const others = [ask("/"), ask("/health", "POST"), ask("/constructor"), ask("/health/x")];
    expect(await Promise.all(others)).toEqual([
      [404, "/"],
      [404, "/health"],
      [404, "/constructor"],
      [404, "/health/x"],
    ]);
    expect(loads).toBe(1);
  } finally {
    await close(0);
  }
});

it("loads h3 again after a load that failed", async () => {
  let loads = 0;
  const handler = createNodeHandler({
    loadRoutes: async () => {
      loads += 1;
      if (loads === 1) throw new Error("too many open files");
      return async (_req, res) => void res.end("found");
    },
  });
  const { url, close } = await listen({ host: "127.0.0.1", port: 0, handler });
  try {
    const statuses: number[] = [];
    for (let times = 0; times < 3; times++) statuses.push((await fetch(`${url}/x`)).status);
    expect([statuses, loads]).toEqual([[500, 200, 200], 2]);
  } finally {
    await close(0);
  }
});
