// A gateway with MCP servers and models whose tools it runs.
import {
  call,
  say,
  scriptedModel,
  startUpstream,
  toolResults,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { startFakeServer, type FakeServer } from "../../plugins/frontends/mcp/fake-server.ts";

export const KEYS = {
  all: mintKey().secret,
  some: mintKey().secret,
  few: mintKey().secret,
  fewer: mintKey().secret,
  none: mintKey().secret,
} as const;
export type KeyName = keyof typeof KEYS;
const SECRETS = KEYS;

export interface Setup extends AsyncDisposable {
  readonly gateway: InProcessGateway;
  readonly up: TestUpstream;
  readonly server: FakeServer;
  /** Settle rows in the order of the ledger. */
  rows(): Promise<readonly Row[]>;
}

export interface Row {
  readonly kind: string;
  readonly request: string;
  readonly target: { readonly provider: string; readonly model: string };
  readonly outcome: string;
  readonly state: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly labels: Readonly<Record<string, string>>;
}

/** Settings of `gateway_mcp`. */
export const SETTINGS = "{ max_turns: 4, max_calls: 5, max_result_kb: 1, timeout_s: 60 }";

export async function start(settings = SETTINGS): Promise<Setup> {
  const stack = new AsyncDisposableStack();
  const server = stack.use(
    await startFakeServer({
      revision: "2026-07-28",
      tools: [
        {
          name: "add",
          description: "Adds numbers.",
          inputSchema: ADD_SCHEMA,
          annotations: { readOnlyHint: true },
        },
        "echo",
        "drop_table",
        "big",
        "fails",
        "hangs",
      ],
      async call({ name, args, res }) {
        if (name === "big") return { content: [{ type: "text", text: "x".repeat(2_000) }] };
        if (name === "fails")
          return { content: [{ type: "text", text: "It failed." }], isError: true };
        if (name === "hangs")
          return void (await new Promise((resolve) => res.on("close", resolve)));
        const text =
          name === "add" ? String(Number(args["a"]) + Number(args["b"])) : JSON.stringify(args);
        return { content: [{ type: "text", text }] };
      },
    }),
  );
  const up = stack.adopt(await startUpstream(), (one) => one.close());
  const key = (id: KeyName, more: string) =>
    `{ id: ${id}, digest: ${digestKey(SECRETS[id])}${more} }`;
  const gateway = stack.use(
    await startInProcess({
      yaml: `
frontends:
  - { use: responses, with: { gateway_mcp: ${settings}, background: {} } }
  - { use: messages, with: { gateway_mcp: ${settings} } }
  - use: mcp
    with:
      servers:
        math: { url: "${server.url}", prices: { "*": "0.001" } }
        private: { url: "${server.url}", zero_retention: true }
      sets: { sums: ["math/add"] }
middleware:
  - use: auth
    with:
      keys:
        - ${key("all", "")}
        - ${key("some", ', tools: ["math/add", "math/echo"]')}
        - ${key("few", ', limits: ["requests=3/total"]')}
        - ${key("fewer", ', limits: ["requests=3/total"]')}
        - ${key("none", ", frontends: [responses, messages]")}
  - zdr
  - limits
providers:
  openai: { use: openai, state_mode: relay, with: { api_key: k, base_url: "${up.url}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up.url}" } }
  cleared: { use: openai, with: { base_url: "${up.url}/v1" }, credentials: [{ name: main, with: { api_key: k }, zdr: { declared: true, note: test, until: 2099-01-01 } }] }
  plain: { use: openai-compatible, with: { api_key: k, base_url: "${up.url}/v1" }, models: { model: { price: { input: "1", output: "2" } } } }
  clean:
    use: openai-compatible
    with: { base_url: "${up.url}/v1" }
    credentials: [{ name: main, with: { api_key: k }, zdr: { declared: true, note: test, until: 2099-01-01 } }]
    models: { model: { price: { input: "1", output: "2" } } }
`,
    }),
  );
  return {
    gateway,
    up,
    server,
    async rows() {
      const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
        readonly items: readonly Row[];
      };
      return items.filter(({ kind }) => kind === "settle");
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const ADD_SCHEMA = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
};

/** A model that makes these calls, one turn after the other, and then repeats the last results. */
export const model = (...turns: readonly (readonly [name: string, args?: object])[][]) => {
  let turn = 0;
  return scriptedModel(
    (request) => {
      const results = toolResults(request);
      const body = request.json() as { tool_choice?: unknown };
      const isNone = JSON.stringify(body.tool_choice ?? "").includes("none");
      const next = isNone ? undefined : turns[turn++];
      if (!next) return say(results.length > 0 ? `Results: ${results.join(", ")}` : "Nothing");
      const [first, ...more] = next;
      return more.reduce(
        (script, [name, args = {}]) => script.call(name, args as never),
        call(first![0], (first![1] ?? {}) as never),
      );
    },
    ["gpt-4.1", "claude-opus-5", "model"],
  );
};

export const sentBodies = (up: TestUpstream): any[] =>
  up.requests.filter(({ method }) => method === "POST").map((one) => one.json());
