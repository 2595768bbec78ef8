// Calls that a plugin makes itself: their rows, limits, prices, and the end of their request.
import { expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { defineFrontend, fail, type OpenCallOptions } from "tollgate/plugin";
import { startGateway, type StartedGateway } from "tollgate/testing";
import { until } from "../../kit/wait.ts";

const { secret } = mintKey();
/** Middleware with a key and a limit. */
const limitedTo = (limit: string): string =>
  `store: memory\nmiddleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }, { use: limits, with: { limits: ["${limit}"] } }]`;

type Options = Omit<OpenCallOptions, "parentRequest" | "provider" | "model" | "protocol">;

/** A frontend that makes one call for each request, and settles it as the path says. */
const frontend = (options: Options, onOpen: () => void = () => undefined) =>
  defineFrontend({
    api: 1,
    name: "tools",
    summary: "Calls tools",
    setup: (_, ctx) => ({
      routes: [
        {
          method: "POST",
          path: "/call/:state",
          async handle(x) {
            const call = await ctx.openCall({
              parentRequest: x,
              provider: "tools:one",
              model: "run",
              protocol: "tools",
              ...options,
            });
            onOpen();
            const { state } = x.params;
            if (state === "left") return { status: 200, body: {} };
            if (state === "broken") return fail("upstream", "The tool failed.");
            await call.settle({ outcome: "ok", state: state as "exact" });
            await call.settle({ outcome: "internal", state: "void" });
            return { status: 200, body: { id: call.id } };
          },
        },
      ],
    }),
  });

const start = (options: Options, middleware = "", onOpen?: () => void): Promise<StartedGateway> =>
  startGateway({
    config: `frontends: [{ use: tools }]\nproviders: { demo: { use: demo } }\n${middleware}`,
    plugins: { tools: frontend(options, onOpen) },
  });

const call = (gateway: StartedGateway, state: string) =>
  fetch(`${gateway.url}/call/${state}`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
  });

const PRICE = { lines: [{ unit: "tool_runs", usd: "0.002", per: 1 }] } as const;

it("a call has its reserve row when it opens, and one settle row", async () => {
  const open: string[][] = [];
  await using gateway = await start({ price: PRICE, argumentsHash: "abc" }, "", () =>
    open.push(gateway.storeCommands.map((row) => row.do)),
  );
  expect((await call(gateway, "exact")).status).toBe(200);
  expect(open[0]).toContain("reserve");
  expect(open[0]).not.toContain("settle");
  const [reserve] = gateway.storeCommands.filter((row) => row.do === "reserve");
  expect(reserve).toMatchObject({
    target: { provider: "tools:one", model: "run", protocol: "tools", credential: "default" },
    holdNano: 2_000_000n,
    clientRequest: { argumentsHash: "abc", protocol: "tools" },
  });
  expect(gateway.calls).toMatchObject([
    { outcome: "ok", state: "exact", usage: { tool_runs: 1 }, costNano: 2_000_000n },
  ]);
});

it.each([
  ["void", { state: "void", costNano: 0n, usage: {} }],
  ["left", { state: "estimated", outcome: "internal", costNano: 2_000_000n }],
  ["broken", { state: "estimated", outcome: "internal", costNano: 2_000_000n }],
])("a call that ends as %s is settled", async (state, expected) => {
  await using gateway = await start({ price: PRICE });
  await call(gateway, state);
  await until(() => gateway.calls.some((call) => call.state === expected.state));
  expect(gateway.calls).toMatchObject([expected]);
});

it("a call without a price is free and exact", async () => {
  await using gateway = await start({});
  await call(gateway, "exact");
  expect(gateway.calls).toMatchObject([{ state: "exact", costNano: 0n }]);
});

it.each(["calls=1/day", "requests=1/day", "usd=0.003/day"])("%s limits calls", async (limit) => {
  await using gateway = await start({ price: PRICE }, limitedTo(limit));
  expect((await call(gateway, "exact")).status).toBe(200);
  expect((await call(gateway, "exact")).status).toBe(429);
});

it("a limit of calls does not count requests to models", async () => {
  await using gateway = await startGateway({
    config: `providers: { p: { use: openai-compatible, with: { base_url: "\${env:UPSTREAM}/v1" } } }
${limitedTo("calls=1/day")}`,
  });
  for (let i = 0; i < 3; i++)
    expect((await gateway.ask("p/m", "Hi", { key: secret })).status).toBe(200);
});
