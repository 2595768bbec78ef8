// Settings of a middleware in gateway.yaml, through a whole gateway: timeouts of its hooks, and the
// effect of their failure; streaming and non-streaming, in both modes.
import { describe, expect, it } from "vitest";
import { defineMiddleware, fail, type Hooks } from "tollgate/plugin";
import { startTestGateway, say, scriptedModel, startUpstream } from "tollgate/testing";
import acme from "../../../examples/acme.ts";
import lines from "../../../examples/lines.ts";

const mount = (name: string, hooks: Hooks) =>
  defineMiddleware({ api: 1, name, summary: name, sends: "nowhere", setup: () => hooks });
const forever = () => new Promise<never>(() => {});

const HOOKS: Readonly<Record<string, Hooks>> = {
  hanging: { inspect: forever },
  mistaken: {
    inspect() {
      throw new TypeError("a mistake");
    },
    watch: () => () => {
      throw new TypeError("a mistake");
    },
  },
  refusing: { inspect: () => fail("forbidden", "Not from here.") },
  late: { attempt: async (_call, next) => (await next(), forever()) },
};

async function stage(middleware: string) {
  const up = await startUpstream(scriptedModel(say("Hello"), ["large"]));
  const plugins = {
    acme,
    lines,
    ...Object.fromEntries(Object.entries(HOOKS).map(([name, hooks]) => [name, mount(name, hooks)])),
  };
  const at = await startTestGateway({
    plugins,
    yaml: `frontends: [chat-completions, lines]
middleware: [door, ${middleware}]
providers: { acme: { use: acme, with: { base_url: "${up.url}/v1", api_key: canary-acme-7f3a } } }`,
  });
  const asks: readonly (readonly [string, object])[] = [
    ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
    ["/lines", { prompt: "Hi" }],
  ];
  return {
    at,
    /** Each type of request, one after another. */
    async all() {
      const got: { status: number; text: string }[] = [];
      for (const [path, body] of asks)
        for (const stream of [false, true]) {
          const res = await fetch(`${at.url}${path}`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: "Bearer x" },
            body: JSON.stringify({ model: "acme/large", stream, ...body }),
          });
          got.push({ status: res.status, text: await res.text() });
        }
      return got;
    },
    states: () => at.storeCommands.flatMap((row) => (row.do === "settle" ? [row.state] : [])),
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

describe("timeout and on_error", () => {
  it.each([
    ["hanging", "{ use: hanging, timeout: 100ms }", 503, []],
    ["mistaken", "mistaken", 500, []],
    ["refusing", "{ use: refusing, on_error: continue }", 403, []],
    [
      "late",
      "{ use: late, timeout: 100ms }",
      503,
      ["estimated", "estimated", "estimated", "estimated"],
    ],
  ] as const)(
    "%s: the request fails, and the error names the middleware but not its exception",
    async (name, mounted, status, states) => {
      await using it = await stage(mounted);
      for (const got of await it.all()) {
        expect(got.status, got.text).toBe(status);
        expect(got.text).not.toMatch(/Hello|a mistake/);
        if (name !== "refusing") expect(got.text).toContain(`middleware.${name}`);
      }
      expect(it.states()).toEqual(states);
      if (name === "hanging" || name === "late")
        expect(
          it.at.logs.filter(({ fields }) => fields["plugin"] === `middleware.${name}`),
        ).toHaveLength(4);
    },
  );

  it.each([
    "{ use: hanging, timeout: 100ms, on_error: continue }",
    "{ use: mistaken, on_error: continue }",
    "{ use: late, timeout: 100ms, on_error: continue }",
  ])("%s: the request continues", async (mounted) => {
    await using it = await stage(mounted);
    for (const got of await it.all()) {
      expect(got.status, got.text).toBe(200);
      expect(got.text).toContain("Hello");
    }
    expect(it.states()).toHaveLength(4);
    expect(
      it.at.logs.filter(({ fields }) => fields.action === "skipped").length,
    ).toBeGreaterThanOrEqual(4);
  });
});
