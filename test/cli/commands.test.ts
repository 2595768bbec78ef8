import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { expect, test } from "vitest";
import { plural } from "../../src/lib/text.ts";
import { digestKey, mintKey } from "../../src/lib/api-key.ts";
import { createTestFolder, MINIMAL_CONFIG } from "../kit/process/command-line.ts";
import { root } from "../kit/process/program.ts";

const BROKEN = MINIMAL_CONFIG.replace("use: demo", "use: dmeo").replace("port: 0", "prot: 0");
const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

test("prints --version, and rejects unknown commands and options", async () => {
  await using here = await createTestFolder();
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  expect(await here.tollgate(["--version"])).toEqual({
    code: 0,
    out: `${version}\n`,
    err: "",
  });
  const unknown = await here.tollgate(["chek"]);
  expect([unknown.code, unknown.out]).toEqual([1, ""]);
  expect(unknown.err).toContain('Unknown command "chek". Did you mean "check"?');
  const json = await here.tollgate(["chek", "--json"]);
  expect(JSON.parse(json.out)).toMatchObject({ error: { code: "usage" } });
});

test("check: reports all errors in one run and creates no files", async () => {
  await using here = await createTestFolder({ "gateway.yaml": BROKEN });
  const { code, out, err } = await here.said(["check"]);
  expect([code, err]).toEqual([1, ""]);
  expect(out).toMatch(/gateway\.yaml:1:11 {2}error {2}listen.*: unknown key "prot".*"port"/);
  expect(out).toMatch(/gateway\.yaml:6:16 {2}error .*"dmeo"/);
  expect(out).toContain("> 6 |   demo: { use: dmeo }");
  expect(out).toMatch(/\n\ngateway\.yaml: 2 errors\n$/);
  const json = await here.said(["check", "--json"]);
  expect(json.code).toBe(1);
  const said = JSON.parse(json.out) as { ok: boolean; problems: { line: number }[] };
  expect([said.ok, said.problems.map(({ line }) => line)]).toEqual([false, [1, 6]]);
});

const TEN = `listen: { port: 99999 }
workers: many
shutdown: soon
store: { use: sqlite, with: { durability: pwoer } }
frontends: [chat-completions, mesages]
middleware: [auth, { use: limits, with: { limits: [lots] } }, { use: usage, for: { providers: [nobody] } }]
providers:
  demo: { use: demo, wiht: {} }
  openai: { use: openai, with: { api_key: "${"${env:NOT_SET}"}" }, models: { gpt-6: { price: { input: "-3" } } } }
  local: { use: openai-compatible, with: { base_url: "not a url" } }
  other: { use: openai-compatible, with: {} }
models:
  fast: [openia/gpt-6]
  loop: [loop]
`;

test("check: no error of fourteen hides another error", async () => {
  await using here = await createTestFolder({ "gateway.yaml": TEN });
  const { out } = await here.said(["check", "--json"]);
  const { problems } = JSON.parse(out) as { problems: { line: number; path: string }[] };
  expect(problems.map(({ line, path }) => `${line} ${path}`)).toEqual([
    "1 listen.port",
    "2 workers",
    "3 shutdown",
    "4 store.with.durability",
    "5 frontends.mesages",
    "6 middleware.limits.with.limits[0]",
    "6 middleware.usage.for.providers[0]",
    "8 providers.demo.wiht",
    "9 providers.openai.with.api_key",
    "9 providers.openai.models.gpt-6.price.input",
    "10 providers.local.with.base_url",
    "11 providers.other.with",
    "13 models.fast[0]",
    "14 models.loop[0]",
  ]);
});

test("check: leaves no trace of a valid config with setup; warnings fail under --strict", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace(
      "demo }",
      "demo }\n  a: { use: anthropic, with: { api_key: sk-ant-1234567890 } }",
    ),
  });
  const fine = await here.said(["check"]);
  expect(fine.code).toBe(0);
  expect(fine.out).toMatch(
    /gateway\.yaml is valid: 2 providers, 2 frontends, 0 model names \(1 warning\)\n$/,
  );
  expect(fine.out).not.toContain("sk-ant-1234567890");
  expect((await here.said(["check", "--strict"])).code).toBe(1);
  expect(await exists(join(here.path, ".tollgate"))).toBe(false);
});

test("check: reports errors that only setup finds, with their line", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("[auth]", "[auth, { use: ./bad.mjs }]").replace(
      "demo }",
      "demo }\n  a: { use: anthropic, with: { api_key: sk-ant-1234567890 } }",
    ),
    "bad.mjs": `export default { "~tollgate": "middleware", api: 1, name: "bad", summary: "Bad", sends: "nowhere",
      setup() { throw new Error("no such region"); } };`,
  });
  const { code, out } = await here.said(["check"]);
  expect(code).toBe(1);
  expect(out).toMatch(/gateway\.yaml:4:\d+ {2}error .*no such region/);
  // With earlier values, in one order.
  expect(out.match(/^gateway\.yaml:\d+/gm)).toEqual(["gateway.yaml:4", "gateway.yaml:7"]);
  expect((await here.said(["check", "--no-setup"])).code).toBe(0);
});

test("print: prints an equivalent config with hidden secrets", async () => {
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  const yaml = await here.said(["print"]);
  expect([yaml.code, yaml.err]).toEqual([0, ""]);
  const said = parse(yaml.out) as Record<string, unknown>;
  expect(said).toMatchObject({
    listen: { host: "127.0.0.1", port: 0 },
    shutdown: { timeout: "300s" },
  });
  const json = await here.said(["print", "--json"]);
  expect(JSON.parse(json.out)).toEqual(said);
  await here.write("gateway.yaml", BROKEN);
  const broken = await here.said(["print"]);
  expect([broken.code, broken.out]).toEqual([1, ""]);
  expect(broken.err).toContain("2 errors");
});

test("explain: reads the file if no gateway is running", async () => {
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  const words = await here.said(["explain", "demo/echo"]);
  expect([words.code, words.err]).toEqual([0, ""]);
  expect(words.out).toMatch(
    /demo\/echo on chat-completions[\s\S]*1 {2}demo\/echo {2}credential default/,
  );
  const json = await here.said([
    "explain",
    "demo/echo",
    "--frontend",
    "chat-completions",
    "--json",
  ]);
  expect(JSON.parse(json.out)).toMatchObject({
    frontend: "chat-completions",
    candidates: [{ id: "demo/echo" }],
    hooks: { admit: ["middleware.auth"] },
    timeouts: { connectMs: 5_000 },
  });
  const nobody = await here.said(["explain", "nobody/x"]);
  expect(nobody.code).toBe(1);
  expect(await exists(join(here.path, ".tollgate"))).toBe(false);
});

test("explain: shows when a route hedges, and the cost", async () => {
  const models =
    "{ m: { candidates: [demo/echo, other/echo], hedge: { quick: 4s, reasoning: 1m } } }";
  const providers = "{ demo: { use: demo }, other: { use: demo } }";
  await using here = await createTestFolder({
    "gateway.yaml": `providers: ${providers}\nmodels: ${models}\n`,
  });
  const { out } = await here.said(["explain", "m"]);
  expect(out).toMatch(/hedging\s+class (quick|reasoning): if no content arrives within (4s|1m)/);
  expect(out).toContain("both calls are billed");
  const off = await here.said(["explain", "demo/echo"]);
  expect(off.out).not.toContain("hedging");
  const printed = await here.said(["print"]);
  expect(printed.out).toMatch(/hedge:\s+quick: 4s\s+reasoning: 1m/);
});

test("explain: shows the WebSocket of a relay, and of requests", async () => {
  const provider =
    "{ use: openai, with: { api_key: sk-test }, models: { gpt-realtime: { operation: realtime } } }";
  await using here = await createTestFolder({
    "gateway.yaml": `frontends: [realtime, responses, gemini]\nproviders: { vendor: ${provider}, demo: { use: demo } }\n`,
  });
  const relay = await here.said(["explain", "vendor/gpt-realtime"]);
  expect([relay.code, relay.err]).toEqual([0, ""]);
  expect(relay.out).toMatch(/vendor\/gpt-realtime on realtime[\s\S]*passthrough/);
  expect(relay.out).toMatch(/WebSocket\n {2}\/v1\/realtime, [^\n]*\n {2}Messages pass unchanged/);
  expect(relay.out).toContain("calls over WebRTC: /v1/realtime/calls");
  expect(relay.out).toMatch(/timeouts\n {2}connect \w+$/m);
  const json = await here.said(["explain", "vendor/gpt-realtime", "-f", "realtime", "--json"]);
  expect(JSON.parse(json.out)).toMatchObject({
    frontend: "realtime",
    candidates: [{ id: "vendor/gpt-realtime", mode: "passthrough" }],
    sockets: [{ type: "relay", paths: expect.arrayContaining(["/v1/realtime"]) }],
  });
  const requests = await here.said(["explain", "demo/echo", "-f", "responses", "--json"]);
  expect(JSON.parse(requests.out)).toMatchObject({
    frontend: "responses",
    sockets: [{ type: "requests", paths: expect.arrayContaining(["/v1/responses"]), calls: [] }],
  });
  // The Live API relays to Google alone.
  const live = await here.said(["explain", "vendor/gpt-realtime", "-f", "gemini-live", "--json"]);
  expect(live.code).toBe(1);
  expect(JSON.parse(live.out)).toMatchObject({
    candidates: [{ excluded: { code: "no_such_operation" } }],
  });
});

test("list: lists built-in plugins and those of the config", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("[auth]", "[auth, { use: ./own.mjs }]"),
    "own.mjs": `export default { "~tollgate": "middleware", api: 1, name: "own", summary: "Our own", sends: "nowhere",
      setup: () => ({}) };`,
  });
  const { code, out, err } = await here.said(["list", "middlewares"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/middleware {2}\.\/own\.mjs +experimental +\/.*own\.mjs +Our own/);
  expect(out).not.toMatch(/^provider/m);
  const json = await here.said(["list", "--json"]);
  const { plugins } = JSON.parse(json.out) as { plugins: Record<string, unknown>[] };
  expect(plugins).toContainEqual(
    expect.objectContaining({ kind: "provider", name: "demo", api: 1 }),
  );
  expect((await here.said(["list", "plugins"])).code).toBe(1);
});

test("schema: writes the schema for editors, updates a stale one, and the schema validates", async () => {
  await using here = await createTestFolder();
  const written = await here.said(["schema"]);
  expect(written.out).toMatch(/^schemas\/gateway\.schema\.json: \d+ plugins\n$/);
  expect((await here.said(["schema", "--check"])).code).toBe(0);
  const text = await readFile(join(here.path, "schemas/gateway.schema.json"), "utf8");
  expect((await here.said(["schema", "--out", "-"])).out).toBe(text);
  await here.write("schemas/gateway.schema.json", `${text} `);
  expect((await here.said(["schema", "--check"])).code).toBe(1);
  const valid = new Ajv({ strict: false, validateFormats: false }).compile(JSON.parse(text));
  expect(valid(parse(MINIMAL_CONFIG))).toBe(true);
  expect(valid(parse(BROKEN))).toBe(false);
});

test("init: its output passes check, without providers and with each built-in provider", async () => {
  await using here = await createTestFolder();
  const bare = await here.said(["init"]);
  // From another folder the schema has another path.
  const body = (text: string) => text.split("\n").slice(1);
  expect(body(bare.out)).toEqual(body(await readFile(join(root, "gateway.yaml"), "utf8")));
  const { plugins } = JSON.parse((await here.said(["list", "provider", "--json"])).out) as {
    plugins: { name: string }[];
  };
  const names = plugins.map(({ name }) => name);
  const { code, out } = await here.said(["init", names.slice(0, 2).join(), ...names.slice(2)]);
  expect(code).toBe(0);
  expect(Object.keys((parse(out) as { providers: object }).providers)).toEqual(names);
  await here.write("gateway.yaml", out);
  const empty = await here.said(["check", "--json"]);
  expect(JSON.parse(empty.out)).toMatchObject({ ok: true });
  const env = Object.fromEntries(
    [...out.matchAll(/\$\{env:(\w+)/g)].map(([, name]) => [
      name!,
      /URL|ENDPOINT/.test(name!) ? "https://models.test/v1" : "sk-0123456789",
    ]),
  );
  const filled = await here.tollgate(["check"], { env });
  expect(filled.out).toContain(`gateway.yaml is valid: ${plural(names.length, "provider")}, `);
  const typo = await here.said(["init", "antropic"]);
  expect([typo.code, typo.err]).toEqual([1, expect.stringContaining('Did you mean "anthropic"?')]);
});

const ACME = `
import { apiKey, defineProvider } from "tollgate/plugin";
export default defineProvider({ api: 1, name: "acme", summary: "Acme's models", credential: apiKey, setup: () => ({ endpoints: [] }) });
`;

test("init and list find plugins that are installed next to the file, without any guarantee for them", async () => {
  await using here = await createTestFolder();
  for (const name of ["tollgate-provider-acme", "@acme/gate"]) {
    const place = join(here.path, "node_modules", name);
    await mkdir(place, { recursive: true });
    const manifest = { name, version: "1.2.3", type: "module", exports: "./index.js" };
    await writeFile(join(place, "package.json"), JSON.stringify(manifest));
    await writeFile(join(place, "index.js"), ACME);
  }
  await here.write("mine.mjs", ACME.replace('"acme"', '"mine"'));
  await here.write("gateway.yaml", "providers: {}");
  for (const [use, key] of [
    ["acme", "acme"],
    ["@acme/gate", "acme"],
    ["./mine.mjs", "mine"],
  ] as const) {
    const { code, out, err } = await here.said(["init", use, "demo"]);
    expect([code, err]).toEqual([0, expect.not.stringContaining("no provider")]);
    const made = parse(out) as { providers: Record<string, { use: string }> };
    expect(Object.keys(made.providers)).toEqual([key, "demo"]);
    expect(made.providers[key]!.use).toBe(use);
    await here.write("gateway.yaml", out);
    const listed = await here.tollgate(["list", "provider", "--json"], {
      env: { [`${key.toUpperCase()}_API_KEY`]: "sk-0123456789" },
    });
    const { plugins } = JSON.parse(listed.out) as { plugins: object[] };
    expect(plugins).toContainEqual(
      expect.objectContaining({ name: use, stability: "experimental" }),
    );
  }
  const none = await here.said(["init", "tollgate-provider-nowhere"]);
  expect([none.code, none.err]).toEqual([1, expect.stringMatching(/use: nowhere|no provider/)]);
});

test("status: fails if no gateway is running", async () => {
  await using here = await createTestFolder({ "gateway.yaml": BROKEN });
  const { code, err } = await here.said(["status"]);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(`No gateway is running at ${here.path}/.tollgate.`),
  ]);
  const missing = await here.said(["status", "-c", "nowhere.yaml"]);
  expect(missing.err).toMatch(/Cannot read \S*nowhere\.yaml: ENOENT\./);
});

test("keys hash: reads a complete key, and only from stdin", async () => {
  await using here = await createTestFolder();
  const { secret } = mintKey();
  const { code, out } = await here.tollgate(["keys", "hash"], { input: `${secret}\n` });
  expect([code, out]).toEqual([0, `${digestKey(secret)}\n`]);
  const typo = await here.tollgate(["keys", "hash"], { input: `${secret.slice(0, -1)}!` });
  expect([typo.code, typo.out]).toEqual([1, ""]);
  // Keys of other systems may have any prefix. A guessable one causes a warning.
  for (const foreign of ["sk-proj-0123456789abcdef0123456789", "tg_bot_0123456789abcdef0123"]) {
    const args = ["keys", "hash", "--external", "--json"];
    const said = JSON.parse((await here.tollgate(args, { input: foreign })).out) as unknown;
    expect(said).toEqual({ id: null, external: true, digest: digestKey(foreign) });
  }
  const short = await here.tollgate(["keys", "hash", "--external"], { input: "secret" });
  expect([short.code, short.err]).toEqual([0, expect.stringContaining("short enough to guess")]);
  expect((await here.tollgate(["keys", "hash"], { input: "" })).err).toContain(
    "Missing key on stdin",
  );
  expect((await here.tollgate(["keys", "hash", secret])).code).toBe(1);
});

test("keys: uses the store directly if no gateway is running", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("memory", "sqlite"),
  });
  const made = await here.said([
    "keys",
    "create",
    "--name",
    "laptop",
    "--limit",
    "usd=2.50/day",
    "--expires",
    "30d",
  ]);
  expect(made.code).toBe(0);
  expect(made.out).toMatch(/^tg_[0-9A-Za-z]{59}\n$/);
  const shown = await here.said(["keys", "show", "laptop"]);
  expect(shown.out).toMatch(/limits +usd=2\.5\/day/);
  expect(shown.out + shown.err).not.toContain(digestKey(made.out.trim()));
  const bad = await here.said(["keys", "create", "--limit", "usd=5"]);
  expect([bad.code, bad.err]).toEqual([1, expect.stringContaining("Invalid --limit")]);
  const gone = await here.said(["keys", "revoke", "nobody"]);
  expect([gone.code, gone.err]).toEqual([1, expect.stringContaining('Key "nobody" not found')]);
});

test("admins: a token that is created with --expires has that expiry", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("memory", "sqlite"),
  });
  const create = ["admins", "create", "anna", "--role", "viewer", "--json"];
  const { out } = await here.said([...create, "--expires", "2099-01-31"]);
  expect(JSON.parse(out)).toMatchObject({ admin: { expires: Date.parse("2099-01-31") } });
  const past = await here.said([...create, "--expires", "2020-01-31"]);
  expect([past.code, past.err]).toEqual([1, expect.stringContaining("Invalid --expires")]);
});

test("keys: lists keys of gateway.yaml without hashes, and warns of unlikely options of a new key", async () => {
  const hash = digestKey("sk-another-systems-key");
  const listed = `{ use: auth, with: { keys: [{ id: ci, name: builds, digest: "${hash}", models: ["demo/*"], expires: "2020-01-31" }] } }`;
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("memory", "sqlite").replace("[auth]", `[${listed}]`),
  });
  await here.said(["keys", "create", "--name", "laptop"]);
  const { code, out } = await here.said(["keys", "list"]);
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/laptop +valid[\s\S]*ci +builds +expired +middleware\.auth/),
  ]);
  expect(out).not.toContain(hash);
  const served = await here.serve();
  const live = JSON.parse((await here.said(["keys", "list", "--json"])).out) as {
    keys: { id: string; from?: string }[];
  };
  expect(live.keys.map(({ from }) => from)).toContain("middleware.auth");

  const grants = ["--models", "dmo/*,demo/*", "--frontends", "chatt"];
  const doubtful = await here.said(["keys", "create", "--name", "laptop", ...grants]);
  expect([doubtful.code, doubtful.out]).toEqual([0, expect.stringMatching(/^tg_\w{59}\n$/)]);
  expect(doubtful.err.split("\n").filter((line) => line.startsWith("warning"))).toEqual([
    expect.stringMatching(
      /^warning {2}the key \w+ is also named "laptop", so commands need the ID \w+$/,
    ),
    'warning  No configured model matches "dmo/*".',
    'warning  Frontend "chatt" is not configured.',
  ]);
  served.kill("SIGTERM");
});
