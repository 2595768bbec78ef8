// A plugin can reach the public internet and the addresses in its operator's options, and nothing
// else, whatever a client requests.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineFrontend, defineMiddleware, defineProvider, type Definition } from "tollgate/plugin";
import { startTestGateway, type TestGateway } from "tollgate/testing";

const servers = await Promise.all(
  Array.from({ length: 3 }, async () => {
    const server = createServer((req, res) => {
      if (req.url === "/away") res.writeHead(302, { location: `${away()}/secret` });
      res.end(req.headers["authorization"] ?? "none");
    });
    await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
    return server;
  }),
);
const [named, listed, other] = servers.map(
  (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
) as [string, string, string];
const away = () => other;

/** Fetches the requested URL, and returns the result. Follows redirects, as a plugin may. */
const fetcher = (more: object = {}): Definition =>
  defineFrontend({
    api: 1,
    name: "fetcher",
    summary: "Fetches",
    options: {
      type: "object",
      additionalProperties: false,
      properties: {
        judge: { type: "string", "x-origin": true, description: "Where the judge is" },
        more: {
          type: "array",
          items: { type: "string", "x-origin": true },
          description: "Where others are",
        },
        note: { type: "string", description: "Anything" },
      },
    },
    ...(more as {}),
    setup: (_options, ctx) => ({
      routes: [
        {
          method: "GET",
          path: "/fetch",
          allowUnauthenticated: true,
          async handle(x) {
            try {
              let got = await ctx.fetch(x.query.get("to")!);
              const next = got.headers.get("location");
              if (next !== null) got = await ctx.fetch(next);
              return { status: 200, body: `${got.status} ${await got.text()}` };
            } catch (error) {
              return { status: 200, body: (error as Error).message };
            }
          },
        },
      ],
    }),
  });

const fetched = async (at: TestGateway, to: string): Promise<string> =>
  (await (await fetch(`${at.url}/fetch?to=${encodeURIComponent(to)}`)).json()) as string;
const mounted = (of: object, plugin = fetcher(), env: Record<string, string> = {}) =>
  startTestGateway({
    plugins: { fetcher: plugin },
    env,
    yaml: `frontends: [{ use: fetcher, with: ${JSON.stringify(of)} }]`,
  });

let own: TestGateway;
beforeAll(async () => {
  own = await mounted({ judge: `${named}/v1?x=1`, more: [listed], note: other });
});
afterAll(async () => {
  await own[Symbol.asyncDispose]();
  for (const server of servers) server.close();
});

describe("an address on a private network", () => {
  it("is dialed if a marked option names its origin, alone or in a list", async () => {
    expect(await fetched(own, `${named}/anything`)).toBe("200 none");
    expect(await fetched(own, listed)).toBe("200 none");
  });

  const port = (at: string) => at.split(":").at(-1)!;
  it.each([
    ["that only an unmarked option names", () => other],
    ["of another port", () => `http://127.0.0.1:${Number(port(other))}`],
    ["of the same port under another name", () => `http://127.1.2.3:${port(named)}`],
    ["that looks like it", () => `http://127.0.0.1:${port(named)}@127.0.0.1:${port(other)}/`],
    ["that a named one redirects to", () => `${named}/away`],
    ["in another scheme", () => named.replace("http:", "https:")],
  ])("%s is not dialed", async (_which, to) => {
    const said = await fetched(own, to());
    expect(said).not.toMatch(/^200/);
    expect(said).toMatch(
      /^The address \S+ is not on the public internet\b[^.]*\. [^.]+ x-origin[^.]*\.$/,
    );
    expect(said.match(/The address/g)).toHaveLength(1);
  });

  it("of the cloud's metadata service is not dialed, and the error names the declaration", async () => {
    expect(await fetched(own, "http://169.254.169.254/latest")).toMatch(
      /^169\.254\.169\.254 belongs to the cloud metadata service, .* in needs\.metadata\.$/,
    );
  });

  it("is not dialed by a plugin without options, and is dialed if declared", async () => {
    await using without = await mounted({});
    expect(await fetched(without, named)).toContain("not on the public internet");
    await using needs = await mounted({}, fetcher({ needs: { origins: [named] } }));
    expect(await fetched(needs, named)).toBe("200 none");
    await using told = await mounted(
      { note: listed },
      fetcher({ needs: { origins: ({ note }: { note?: string }) => (note ? [note] : []) } }),
    );
    expect(await fetched(told, listed)).toBe("200 none");
    expect(await fetched(told, named)).toContain("not on the public internet");
  });

  it("is dialed if a declared variable contains it, and no other variable is read", async () => {
    const needs = (...names: readonly string[]) => ({
      needs: {
        env: names,
        origins: (_options: object, env: (name: string) => string | undefined) => [
          env("COLLECTOR") ?? listed,
        ],
      },
    });
    await using at = await mounted({}, fetcher(needs("COLLECTOR")), { COLLECTOR: named });
    expect(await fetched(at, named)).toBe("200 none");
    expect(await fetched(at, listed)).toContain("not on the public internet");
    await using unset = await mounted({}, fetcher(needs("COLLECTOR")));
    expect(await fetched(unset, listed)).toBe("200 none");
    await expect(mounted({}, fetcher(needs("OTHER")))).rejects.toThrow(
      "needs.env does not include COLLECTOR",
    );
  });

  it("that is invalid is rejected with its line, when the file is read", async () => {
    await expect(mounted({ judge: "127.0.0.1:9" })).rejects.toThrow(/judge|http/);
    await expect(mounted({}, fetcher({ needs: { origins: ["*"] } }))).rejects.toThrow(
      /needs.*"\*".*not a valid origin/s,
    );
  });
});

it("that does not respond is reported without the engine's message", async () => {
  const closed = createServer();
  await new Promise<void>((r) => closed.listen(0, "127.0.0.1", r));
  const at = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
  await new Promise((r) => closed.close(r));
  await using here = await mounted({ judge: at });
  expect(await fetched(here, at)).toBe(`The server at ${at} cannot be reached: ECONNREFUSED.`);
});

it("has the same rule for every kind of plugin, and a provider's origins are its own", async () => {
  const seen: string[] = [];
  const options = {
    type: "object",
    additionalProperties: false,
    properties: { at: { type: "string", "x-origin": true, description: "Where it is" } },
  } as const;
  const ask = async (fetch: (to: string) => Promise<Response>, who: string) => {
    for (const to of [named, listed, other])
      seen.push(
        `${who} ${await fetch(to).then(
          (r) => r.text(),
          () => "refused",
        )}`,
      );
  };
  const middleware = defineMiddleware({
    api: 1,
    name: "asks",
    summary: "Asks",
    sends: "nowhere",
    options,
    setup: (_o, ctx) => ({
      async admit(x) {
        await ask((to) => ctx.fetch(to), "middleware");
        x.identify({ id: "tester" });
      },
    }),
  });
  const provider = defineProvider({
    api: 1,
    name: "asks",
    summary: "Asks",
    options,
    credential: {
      type: "object",
      additionalProperties: false,
      properties: { api_key: { type: "string", "x-secret": true, description: "Key" } },
    },
    setup: () => ({
      endpoints: [
        {
          operation: "chat",
          base: "https://models.example/v1",
          origins: [listed],
          auth: { header: "authorization", field: "api_key" },
          async *run(_request, call) {
            await ask((to) => call.fetch(to), "provider");
            yield { type: "start" };
            yield { type: "finish", reason: "stop" };
          },
        },
      ],
    }),
  });
  const { chatCompletions } = await import("tollgate/protocols/chat-completions");
  const chat = defineFrontend({
    api: 1,
    name: "chat",
    summary: "Chat",
    setup: () => ({
      protocol: chatCompletions(),
      routes: [{ method: "POST", path: "/chat", actionType: "generate" }],
    }),
  });
  await using here = await startTestGateway({
    plugins: { guard: middleware, asks: provider, chat },
    yaml: `frontends: [chat]
middleware: [{ use: guard, with: { at: ${JSON.stringify(named)} } }]
providers: { asks: { with: { at: ${JSON.stringify(named)}, api_key: sk-1 } } }`,
  });
  const res = await fetch(`${here.url}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "asks/m", messages: [{ role: "user", content: "x" }] }),
  });
  await res.text();
  // The credential is only sent to origins bound by the endpoint, and to none that an option names.
  expect(seen).toEqual([
    "middleware none",
    "middleware refused",
    "middleware refused",
    "provider none",
    "provider sk-1",
    "provider refused",
  ]);
});
