// The matrix of official clients and servers behind one gateway: SDKs in TypeScript and Python, each
// in its newest version and in one that is a year older, `server-everything`, and a server with
// OAuth, whose user has connected an account. Prints the revisions that both sides speak.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  pythonWith,
  startEverything,
  startExample,
  startNewest,
  startPython,
} from "./example-servers.ts";
import { CONNECTS, SDK, SDK_OLD } from "./sdk-clients.ts";

const { CI, CLIENTS } = process.env;
const canRun = CI !== undefined || CLIENTS !== undefined;
const ADMIN = "owner-token-".padEnd(40, "0123456789");
const { secret } = mintKey();
const SCRIPT = join(import.meta.dirname, "mcp_client.py");

interface Started extends AsyncDisposable {
  readonly url: string;
  readonly issuer?: string;
}

interface Server {
  readonly title: string;
  readonly start: () => Promise<Started>;
  readonly tool: string;
  readonly args: object;
  readonly text: RegExp;
}

const greet = { tool: "greet", args: { name: "matrix" }, text: /Hello, matrix!/ };
const notify = {
  tool: "start-notification-stream",
  args: { interval: 5, count: 2 },
  text: /notifications/,
};

const SERVERS: Readonly<Record<string, Server>> = {
  old: {
    title: "sdk 1.23.0",
    start: () => startExample(SDK_OLD, "simpleStreamableHttp"),
    ...greet,
  },
  "old-json": {
    title: "sdk 1.23.0, JSON",
    start: () => startExample(SDK_OLD, "jsonResponseStreamableHttp"),
    ...greet,
  },
  "old-stateless": {
    title: "sdk 1.23.0, stateless",
    start: () => startExample(SDK_OLD, "simpleStatelessStreamableHttp"),
    ...notify,
  },
  sdk: { title: "sdk 1.32.2", start: () => startExample(SDK, "simpleStreamableHttp"), ...greet },
  "sdk-json": {
    title: "sdk 1.32.2, JSON",
    start: () => startExample(SDK, "jsonResponseStreamableHttp"),
    ...greet,
  },
  "sdk-stateless": {
    title: "sdk 1.32.2, stateless",
    start: () => startExample(SDK, "simpleStatelessStreamableHttp"),
    ...notify,
  },
  oauth: {
    title: "sdk 1.32.2, OAuth",
    start: () => startExample(SDK, "simpleStreamableHttp", ["--oauth", "--oauth-strict"]),
    ...greet,
  },
  newest: { title: "server 2.4.0", start: startNewest, ...greet },
  everything: {
    title: "everything 2026.8.31",
    start: startEverything,
    tool: "echo",
    args: { message: "matrix" },
    text: /Echo: matrix/,
  },
  "python-old": { title: "python 1.22.0", start: () => startPython("1.22.0"), ...greet },
  python: { title: "python 2.3.0", start: () => startPython("2.3.0"), ...greet },
};

/** Uses a server: lists its tools and calls one. Returns the client's revision. */
type Use = (of: { url: string; server: Server }) => Promise<string>;

const useSdk =
  (connect: (typeof CONNECTS)[number][1]): Use =>
  async ({ url, server }) => {
    const { client, revision } = await connect({ url, key: secret });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }: { name: string }) => name)).toContain(server.tool);
    const { content } = await client.callTool({ name: server.tool, arguments: server.args });
    expect(JSON.stringify(content)).toMatch(server.text);
    await client.close();
    return revision;
  };

const usePython =
  (version: string, generation: "session" | "stateless"): Use =>
  async ({ url, server }) => {
    const args = [SCRIPT, url, secret, generation, server.tool, JSON.stringify(server.args)];
    const { stdout } = await promisify(execFile)(await pythonWith(version), args, {
      timeout: 120_000,
    });
    const { tools, text, revision } = JSON.parse(stdout) as {
      tools: string[];
      text: string;
      revision: string;
    };
    expect(tools).toContain(server.tool);
    expect(text).toMatch(server.text);
    return revision;
  };

const USES: readonly (readonly [name: string, use: Use])[] = [
  ...CONNECTS.map(([name, connect]) => [name, useSdk(connect)] as const),
  ["python 1.22.0", usePython("1.22.0", "session")],
  ["python 2.3.0, session", usePython("2.3.0", "session")],
  ["python 2.3.0", usePython("2.3.0", "stateless")],
];

describe.skipIf(!canRun)("official clients and servers", () => {
  const stack = new AsyncDisposableStack();
  /** Revisions of clients, by the title of the server. */
  const rows = new Map<string, string[]>();
  let gateway: InProcessGateway;

  beforeAll(async () => {
    const servers: Record<string, object> = {};
    for (const [name, { start }] of Object.entries(SERVERS)) {
      const { url, issuer } = stack.use(await start());
      servers[name] = { url, ...(name === "oauth" && { auth: { type: "user", issuer } }) };
    }
    const options = { servers, connections: { admin_url: "https://admin.example.com" } };
    gateway = stack.use(
      await startInProcess({
        yaml: `
admin: { port: 0, tokens: { owner: { role: owner, token: "\${env:ADMIN}" } } }
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }]
providers: { demo: { use: demo } }
`,
        env: { ADMIN },
      }),
    );
    await connectAccount(gateway);
  }, 900_000);

  afterAll(async () => {
    const tested = gateway ? await gateway.ask("frontends.mcp/test", { client: "one" }) : [];
    const revisions = new Map(
      (tested as { name: string; revision?: string }[]).map((one) => [one.name, one.revision]),
    );
    const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
    console.log(
      [
        line(["server", "revision", ...USES.map(([name]) => name)]),
        line(["---", "---", ...USES.map(() => "---")]),
        ...Object.entries(SERVERS).map(([name, { title }]) =>
          line([title, revisions.get(name) ?? "failed", ...(rows.get(name) ?? [])]),
        ),
      ].join("\n"),
    );
    await stack.disposeAsync();
  });

  describe.each(Object.entries(SERVERS))("server %s", (name, server) => {
    it.each(USES)(
      "%s lists the tools and calls one",
      async (_, use) => {
        const cells = rows.get(name) ?? [];
        rows.set(name, cells);
        const at = cells.push("failed") - 1;
        cells[at] = await use({ url: `${gateway.url}/mcp/${name}`, server });
      },
      300_000,
    );
  });
});

/** Connects the account of the key's user, as a browser would do it. */
async function connectAccount(gateway: InProcessGateway): Promise<void> {
  const { adminUrl } = (await gateway.ask("status")) as { adminUrl: string };
  const post = async (name: string, body: object) => {
    const answer = await fetch(`${adminUrl}/mcp/connect/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${ADMIN}` },
      body: JSON.stringify(body),
    });
    const got = (await answer.json()) as { url?: string };
    expect([name, answer.status, got]).toEqual([name, 200, got]);
    return got;
  };
  const { url } = (await gateway.ask("frontends.mcp/connect", { client: "one" })) as {
    url: string;
  };
  const ticket = new URL(url).hash.slice("#ticket=".length);
  const started = await post("start", { ticket, server: "oauth" });
  const redirected = await fetch(started.url!, { redirect: "manual" });
  const { searchParams } = new URL(redirected.headers.get("location")!);
  await post("finish", { server: "oauth", ...Object.fromEntries(searchParams) });
}
