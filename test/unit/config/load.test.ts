import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { readDefaultConfig, findPackageRoot } from "../../../src/lib/package-root.ts";
import { loadConfig, type LoadConfigOptions } from "../../../src/config/load-config.ts";
import { problem } from "../../../src/config/problems.ts";
import { load } from "./stubs.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";
import { trialCount } from "../../kit/law-effort.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, "gateway.yaml");
/** Files in a folder of their own. The first is the main file. */
let count = 0;
function write(files: Record<string, string>): string {
  const at = join(folder, String(count++));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(at, name, ".."), { recursive: true });
    writeFileSync(join(at, name), text);
  }
  return join(at, Object.keys(files)[0]!);
}
const read = (text: string | object, more: Partial<LoadConfigOptions> = {}) =>
  loadConfig(file, {
    env: { KEY: "sk-key" },
    loadPlugin: load,
    textOverride: typeof text === "string" ? text : stringify(text),
    ...more,
  });
async function good(text: string | object, more: Partial<LoadConfigOptions> = {}) {
  const { config, problems } = await read(text, more);
  expect(problems.filter((p) => p.severity === "error")).toEqual([]);
  return config!;
}
const KEYED = { openai: { with: { api_key: "${env:KEY}" } } };

describe("the embedded default", () => {
  it("equals the gateway.yaml at the top of the package", () => {
    const top = new URL("../../../gateway.yaml", import.meta.url);
    expect(readDefaultConfig()).toBe(readFileSync(top, "utf8"));
    expect(findPackageRoot(join(findPackageRoot(), "dist", "src", "config"))).toBe(
      findPackageRoot(),
    );
  });
  it("loads without variables: only demo, with notes", async () => {
    const { config, problems } = await read(readDefaultConfig(), { env: {} });
    expect(problems.map((p) => [p.severity, p.path])).toEqual([
      ["note", "models.claude-*"],
      ["note", "models.gpt-*"],
      ["note", "models.fast.candidates[0]"],
      ["note", "models.fast.candidates[1]"],
    ]);
    expect([...config!.providers.keys()]).toEqual(["demo"]);
    expect([...config!.unmountedProviders.keys()]).toEqual(["openai", "anthropic"]);
    expect(config!.stateDir).toBe(join(folder, ".tollgate"));
  });
  it("loads with both keys, without notes", async () => {
    const env = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" };
    const { config, problems } = await read(readDefaultConfig(), { env });
    expect(problems).toEqual([]);
    const credentials = [...config!.providers.values()].map((p) => p.credentials);
    expect(credentials.map((list) => list.map((c) => [c.name, c.fields, c.weight]))).toEqual([
      [["default", {}, 1]],
      [["default", { api_key: "a" }, 1]],
      [["main", { api_key: "b" }, 1]],
    ]);
  });
});

describe("defaults and forms", () => {
  it("a file with only defaults is a gateway", async () => {
    for (const text of ["{}", "# nothing\n{}", "providers:\nmodels:\nlisten:\n"]) {
      const config = await good(text);
      expect(config).toMatchObject({
        listen: [{ host: "127.0.0.1", port: 8787, hosts: [], origins: [] }],
        workers: 1,
        shutdown: { announceMs: undefined, timeoutMs: 300_000 },
        strict: false,
        timeouts: { connectMs: 5000, firstByteMs: 600_000, idleMs: 300_000, totalMs: 3_600_000 },
        maxBodyBytes: 32 * 1024 * 1024,
        log: { level: "info", slowRequestMs: 10_000 },
        store: { use: "sqlite", options: { durability: "power" } },
      });
      // By default, every client needs a key.
      expect(config.middleware.map((m) => m.id)).toContain("middleware.auth");
    }
  });
  it("a short form equals its long form", async () => {
    const short = await good({
      store: "sqlite",
      frontends: ["messages"],
      middleware: ["auth", { use: "guard", with: { words: ["x"] } }],
      providers: { demo: null, other: "demo", ...KEYED },
      models: { a: "demo/x", b: ["demo/x", "openai/y"] },
      max_body: 1048576,
    });
    const long = await good({
      store: { use: "sqlite", with: null },
      frontends: [{ use: "messages", with: {} }],
      middleware: [{ use: "auth" }, { use: "guard", with: { words: ["x"] } }],
      providers: {
        demo: { use: "demo" },
        other: { use: "demo" },
        openai: { use: "openai", ...KEYED.openai },
      },
      models: {
        a: { candidates: ["demo/x"] },
        b: { candidates: ["demo/x", "openai/y"], pick: "ordered" },
      },
      max_body: "1MiB",
    });
    expect(short).toEqual(long);
    expect(short.hash).toBe(long.hash);
  });
  it("a credential is in with:, next to the options; the schemas distinguish them", async () => {
    const both = { api_key: "${env:KEY}", region: "eu" };
    const one = (await good({ providers: { openai: { with: both } } })).providers.get("openai")!;
    expect([one.options, one.credentials[0]!.fields]).toEqual([
      { region: "eu" },
      { api_key: "sk-key" },
    ]);
    const zdr = { declared: true, note: "contract", until: "2027-03-01" };
    const list = [
      { name: "a", with: { api_key: "1" }, zdr, weight: 3, models: ["gpt-*"] },
      { name: "b", with: { api_key: "2" } },
    ];
    const two = await good({
      providers: { openai: { with: { region: "eu" }, credentials: list } },
    });
    expect(two.providers.get("openai")!.credentials).toEqual([
      { name: "a", fields: { api_key: "1" }, zdr, weight: 3, models: ["gpt-*"] },
      { name: "b", fields: { api_key: "2" }, zdr: undefined, weight: 1, models: undefined },
    ]);
  });
  it("two entries of one plugin have separate IDs", async () => {
    const guard = { use: "guard", with: { words: ["x"] } };
    const { middleware } = await good({
      middleware: [guard, guard, { ...guard, for: { models: ["a"] } }],
    });
    expect(middleware.map((m) => [m.id, m.scope])).toEqual([
      ["middleware.guard", undefined],
      ["middleware.guard-2", undefined],
      ["middleware.guard-3", { models: ["a"] }],
    ]);
  });
  it("a provider inherits the gateway's timeouts, except for its own", async () => {
    const { providers } = await good({
      timeouts: { idle: "9s" },
      providers: { demo: { timeouts: { total: "1m" } } },
    });
    const own = { idleMs: 9000, totalMs: 60_000 };
    expect(providers.get("demo")!.timeouts).toEqual({
      connectMs: 5000,
      firstByteMs: 600_000,
      ...own,
      classes: new Map([["quick", { firstByteMs: 60_000, ...own }]]),
    });
  });
  it("the nearest of four timeout settings counts", async () => {
    const { providers, timeouts } = await good({
      timeouts: {
        first_byte: "40s",
        classes: { image: { first_byte: "30s", idle: "3s" }, reasoning: { total: "3m" } },
      },
      providers: {
        all: { use: "demo", timeouts: { first_byte: "20s" } },
        some: {
          use: "demo",
          timeouts: { first_byte: "20s", classes: { image: { first_byte: "10s" } } },
        },
        none: { use: "demo" },
      },
    });
    const first = (name: string) => {
      const { classes, firstByteMs } = providers.get(name)!.timeouts;
      return [firstByteMs, classes.get("image")!.firstByteMs, classes.get("image")!.idleMs];
    };
    expect(first("none")).toEqual([40_000, 30_000, 3_000]);
    expect(first("all")).toEqual([20_000, 20_000, 3_000]);
    expect(first("some")).toEqual([20_000, 10_000, 3_000]);
    expect(timeouts.classes.get("reasoning")!.totalMs).toBe(180_000);
    // Classes in the file replace the built-in ones.
    expect([...timeouts.classes.keys()]).toEqual(["image", "reasoning"]);
  });
  it("shutdown is one duration, or two", async () => {
    const of = async (shutdown: unknown) => {
      const { announceMs, timeoutMs } = (await good({ shutdown })).shutdown;
      return [announceMs, timeoutMs];
    };
    expect(await of("9s")).toEqual([undefined, 9_000]);
    expect(await of({ announce: "2s", timeout: "9s" })).toEqual([2_000, 9_000]);
    expect(await of({ announce: "0s" })).toEqual([0, 300_000]);
    expect(await of({ timeout: "9s" })).toEqual([undefined, 9_000]);
  });
  it("model facts of the operator: prices by unit, in dollars, never as a float", async () => {
    const { providers } = await good(`
providers:
  demo:
    models:
      free: { price: free }
      paid:
        operation: image
        price:
          input: 2.50
          output: "10"
          cache_read: 1e-7
          images: "0.04"
          variants: [{ unit: images, usd: "0.17", quality: high }]
          over: [{ above: 200000, input: 5 }]
          tiers: { batch: { input: "1.25" } }
        priced_as: echo
        limits: { context: 1000 }
        data_policy: { retention: { days: 30 }, trains: no, verified_at: 2026-11-01 }
        image: { sizes: [1024x1024] }
`);
    const facts = providers.get("demo")!.facts;
    expect(facts.get("free")).toEqual({ price: "free" });
    expect(facts.get("paid")).toEqual({
      operation: "image",
      price: {
        lines: [
          { unit: "input", usd: "2.5", per: 1_000_000 },
          { unit: "output", usd: "10", per: 1_000_000 },
          { unit: "cache_read", usd: "0.0000001", per: 1_000_000 },
          { unit: "images", usd: "0.04", per: 1 },
          { unit: "images", usd: "0.17", per: 1, variant: { quality: "high" } },
        ],
        over: [{ input: 200_000, lines: [{ unit: "input", usd: "5", per: 1_000_000 }] }],
        tiers: { batch: [{ unit: "input", usd: "1.25", per: 1_000_000 }] },
      },
      pricedAs: "echo",
      limits: { context: 1000 },
      dataPolicy: { retention: { kind: "days", days: 30 }, trains: "no", verifiedAt: "2026-11-01" },
      image: { sizes: ["1024x1024"] },
    });
  });
  it("command-line options override host, port, state directory, workers, and log level", async () => {
    const overrides = {
      host: "::1",
      port: 0,
      stateDir: "/tmp/s",
      workers: "auto",
      logLevel: "debug",
    } as const;
    const config = await good({ listen: { port: 1, origins: ["https://a.test"] } }, { overrides });
    expect(config).toMatchObject({
      listen: [{ host: "::1", port: 0, origins: ["https://a.test"] }],
      stateDir: "/tmp/s",
      workers: "auto",
      log: { level: "debug" },
    });
  });
});

describe("when", () => {
  it.each([
    [undefined, true],
    ["x", true],
    ["no", true],
    [true, true],
    [1, true],
    ["", false],
    ["  ", false],
    ["FALSE", false],
    ["0", false],
    [false, false],
    [0, false],
    [null, false],
    ["${env:GONE:-}", false],
    ["${env:EMPTY:-}", false],
    ["${env:KEY:-}", true],
  ])("%j: mounted: %s", async (when, mounted) => {
    const provider = { use: "demo", ...(when === undefined ? {} : { when }) };
    const config = await good({ providers: { p: provider } }, { env: { KEY: "k", EMPTY: "" } });
    expect(config.providers.has("p")).toBe(mounted);
    expect(config.unmountedProviders.has("p")).toBe(!mounted);
  });
  it("is evaluated first: a disabled entry is not read, its plugin not resolved, and its type errors ignored", async () => {
    const { problems } = await read({
      providers: {
        x: { use: "not-installed", when: false, with: { key: "${env:GONE}${file:/no}" }, wen: 1 },
      },
    });
    expect(problems.map((p) => [p.id, p.path])).toEqual([
      ["config/unknown-key", "providers.x.wen"],
    ]);
  });
});

it("in a disabled entry, a string with a variable is no type error", async () => {
  const waiting = {
    use: "demo",
    when: false,
    require_ready: "${env:GONE}",
    state_mode: "${env:GONE}",
  };
  expect((await read({ providers: { x: waiting } })).problems).toEqual([]);
});

it("an invalid alias is reported at its definition, not at its use", async () => {
  const { problems } = await read("listen:\n  host: &name localhost\n  port: *name\n");
  expect(problems.map((p) => [p.id, p.line, p.column])).toEqual([["config/wrong-type", 3, 9]]);
});

describe("environment variables and files", () => {
  it("a string becomes a number or boolean exactly if the schema requires it", async () => {
    const env = { N: " 42 ", P: "0123", T: "true", W: "auto", B: "1.50", KEY: "0123" };
    const config = await good(
      `
listen: { port: "\${env:P}" }
strict: "\${env:T}"
workers: "\${env:W}"
max_body: "\${env:N:-}"
providers:
  openai: { with: { api_key: "\${env:KEY}", label: "\${env:B}", retries: "\${env:GONE:-3}", beta: "\${env:T}" } }
`.replace('"${env:N:-}"', '"${env:M:-4096}"'),
      { env },
    );
    expect([config.listen[0]!.port, config.strict, config.workers, config.maxBodyBytes]).toEqual([
      123,
      true,
      "auto",
      4096,
    ]);
    const openai = config.providers.get("openai")!;
    expect(openai.options).toEqual({ label: "1.50", retries: 3, beta: true, region: "us" });
    expect(openai.credentials[0]!.fields).toEqual({ api_key: "0123" });
  });
  it("only an exact number becomes a number", async () => {
    for (const PORT of ["", "0x10", "1e999", "12 34", "9007199254740993", "NaN", "1.5"]) {
      const { config } = await read('listen: { port: "${env:PORT}" }', { env: { PORT } });
      expect(config, PORT).toBeUndefined();
    }
  });
  it("files: relative to the config file, without the last line end, watched", async () => {
    const main = write({
      "gateway.yaml":
        'include: ./more/a.yaml\nproviders: { openai: { with: { api_key: "${file:./key}" } } }\n',
      key: "from-main\n",
      "more/a.yaml": 'providers: { anthropic: { with: { api_key: "${file:./key}" } } }\n',
      "more/key": "from\nmore\r\n\n",
    });
    const { config, sources } = await loadConfig(main, { env: {}, loadPlugin: load });
    const keys = [...config!.providers.values()].map((p) => p.credentials[0]!.fields["api_key"]);
    expect(keys).toEqual(["from-main", "from\nmore"]);
    const at = (name: string) => join(main, "..", name);
    expect(new Set(sources)).toEqual(
      new Set(["gateway.yaml", "more/a.yaml", "key", "more/key"].map(at)),
    );
    expect(config!.sources).toEqual(sources);
  });
});

describe("include", () => {
  it("merges maps by key, in the order of the files; other keys are allowed once", async () => {
    const main = write({
      "gateway.yaml":
        "include: [./providers/*.yaml, ./*.yaml]\nlisten: { port: 1 }\nproviders: { demo: {} }\n",
      "providers/b.yaml": "providers: { b: demo }\nlisten: { host: localhost }\n",
      "providers/a.yaml":
        "providers: { a: demo }\nmodels: { x: a/y }\nworkers: 2\nstate_dir: ./s\n",
      "providers/.hidden.yaml": "nonsense",
    });
    const { config, problems } = await loadConfig(main, { env: {}, loadPlugin: load });
    expect(problems).toEqual([]);
    expect([...config!.providers.keys()]).toEqual(["demo", "a", "b"]);
    // A path is relative to its file.
    const stateDir = join(main, "../providers/s");
    expect(config).toMatchObject({
      workers: 2,
      stateDir,
      listen: [{ host: "localhost", port: 1 }],
    });
  });
  it("an error names the file, and the first definition", async () => {
    const main = write({
      "gateway.yaml": "include: ./b.yaml\nproviders:\n  demo: { usee: x }\nworkers: 1\n",
      "b.yaml":
        "workers: 2\ninclude: ./c.yaml\nproviders:\n  demo: {}\n  local: { use: ./none.ts }\nmodels:\n  a: dmo/x\n",
    });
    const { problems } = await loadConfig(main, { env: {}, loadPlugin: load });
    const b = join(main, "..", "b.yaml");
    expect(problems.map((p) => [p.id, p.file, p.line, p.column])).toEqual([
      ["config/unknown-key", main, 3, 11],
      ["config/defined-twice", b, 1, 1],
      ["config/include-nested", b, 2, 1],
      ["config/defined-twice", b, 4, 3],
      ["plugin/not-found", b, 5, 17],
      ["config/unknown-provider", b, 7, 6],
    ]);
    expect(problems[1]!.hint).toBe(`in ${main}:4`);
    expect(problems[4]!.message).toContain(join(main, "..", "none.ts"));
  });
  it("keys of an unreadable file are not reported as missing; the file is watched", async () => {
    const main = write({
      "gateway.yaml": "include: [./b.yaml, ./gone.yaml]\nmodels: { a: b/x }\n",
      "b.yaml": "providers: { b: demo \n",
    });
    const { problems, sources } = await loadConfig(main, { env: {}, loadPlugin: load });
    expect(problems.map((p) => p.id)).toEqual(["config/file-missing", "config/syntax"]);
    expect(sources).toContain(join(main, "..", "gone.yaml"));
  });
});

describe("locations", () => {
  it("point to the plugin's own line, in any file and form", async () => {
    const guard = "{ use: guard, with: { words: [x] } }";
    const main = write({
      "gateway.yaml": `include: ./b.yaml\nmiddleware:\n  - auth\n  - ${guard}\n  - ${guard}\nstore: sqlite\n`,
      "b.yaml": "providers:\n  demo:\n  other: { use: demo }\n",
    });
    const { locate } = await loadConfig(main, { env: {}, loadPlugin: load });
    const b = join(main, "..", "b.yaml");
    const words = problem.setupFailed("x", "boom");
    const at = (id: string) => {
      const { file, line, column, path, frame } = locate(id, words);
      expect([path, frame === undefined]).toEqual([id, line === 0]);
      return [file, line, column];
    };
    expect(at("middleware.auth")).toEqual([main, 3, 5]);
    expect(at("middleware.guard")).toEqual([main, 4, 12]);
    expect(at("middleware.guard-2")).toEqual([main, 5, 12]);
    expect(at("store")).toEqual([main, 6, 8]);
    expect(at("providers.demo")).toEqual([b, 2, 3]);
    expect(at("providers.other")).toEqual([b, 3, 17]);
    // A default, which has no location.
    expect(at("frontends.messages")).toEqual([main, 0, 0]);
  });
});

describe("invalid files", () => {
  it("missing, a directory, too large, not UTF-8: one error without a line", async () => {
    const big = write({ "gateway.yaml": `# ${"x".repeat(1_048_576)}` });
    const latin = write({ "gateway.yaml": "" });
    writeFileSync(latin, Buffer.from([0x61, 0x3a, 0x20, 0xff]));
    for (const [path, id] of [
      [join(folder, "none.yaml"), "config/file-missing"],
      [folder, "config/not-a-file"],
      [big, "config/file-too-large"],
      [latin, "config/not-utf8"],
    ] as const) {
      const { config, problems, print } = await loadConfig(path, { env: {}, loadPlugin: load });
      expect(config).toBeUndefined();
      expect(problems.map((p) => [p.id, p.line, p.file, p.frame])).toEqual([
        [id, 0, path, undefined],
      ]);
      expect(print()).toBe("");
    }
  });
  it("an empty file may be an incomplete save: an error, for the main file and each included one", async () => {
    const ids = ({ problems }: { problems: readonly { id: string }[] }) =>
      problems.map((p) => p.id);
    for (const text of ["", "\n", "  \n\n", "\uFEFF", "# nothing\n", "---\n", "---\n...\n"])
      expect(
        ids(await loadConfig(write({ "gateway.yaml": text }), { env: {}, loadPlugin: load })),
        text,
      ).toEqual(["config/empty-file"]);
    const including = (text: string) =>
      write({ "gateway.yaml": "include: more.yaml", "more.yaml": text });
    const half = await loadConfig(including(" \n"), { env: {}, loadPlugin: load });
    expect([half.config, ids(half)]).toEqual([undefined, ["config/empty-file"]]);
    // A section with all lines commented out is intentional.
    expect(ids(await loadConfig(including("# models:\n"), { env: {}, loadPlugin: load }))).toEqual(
      [],
    );
  });
  it("alias and depth bombs are rejected quickly", async () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i}, `.repeat(9)}]`,
    );
    const started = ownCpuMs();
    for (const [text, id] of [
      [`l0: &l0 lol\n${levels.join("\n")}\n`, "config/too-many-values"],
      [`x: ${"[".repeat(200)}${"]".repeat(200)}\n`, "config/too-deep"],
      [`x: ${"{a: ".repeat(90_000)}`, "config/syntax"],
    ] as const)
      expect((await read(text)).problems.map((p) => p.id)).toContain(id);
    expect(ownCpuMs() - started).toBeLessThan(5000);
  });
  it("ten thousand models are accepted", async () => {
    const models = Array.from({ length: 10_000 }, (_, i) => `  m${i}: [demo/m${i}]`);
    const { problems } = await read(`providers: { demo: {} }\nmodels:\n${models.join("\n")}\n`);
    expect(problems.map((p) => p.id)).not.toContain("config/too-many-values");
  });
  it("any text gives a config or errors, never an exception", async () => {
    const piece = fc.constantFrom(
      "listen",
      "providers",
      "models",
      "use",
      "with",
      "demo",
      ": ",
      "\n",
      "  ",
      "- ",
      "{",
      "}",
      "[",
      "]",
      "&a",
      "*a",
      "!!int",
      "'",
      '"',
      "|",
      "${env:A}",
      "${",
      "1e9",
      "~",
      "include",
      "when",
      "\t",
      "credentials",
      "name",
      ",",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 25 }), async (pieces) => {
        const { config, problems } = await read(pieces.join(""));
        expect(config === undefined).toBe(problems.some((p) => p.severity === "error"));
        for (const p of problems) expect(p.line === 0 || p.column > 0).toBe(true);
      }),
      { numRuns: trialCount(300) },
    );
  });
});

describe("the config object", () => {
  const TEXT = {
    providers: KEYED,
    models: { a: "openai/x" },
    middleware: [{ use: "guard", with: { words: ["x"] } }],
  };
  it("is frozen deeply, except for values of plugins", async () => {
    const config = await good(TEXT);
    const thaw = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      expect(Object.isFrozen(value)).toBe(true);
      for (const [key, each] of value instanceof Map ? value : Object.entries(value))
        if (key === "definition") expect(Object.isFrozen(each)).toBe(false);
        else thaw(each);
    };
    thaw(config);
  });
  it("has an equal hash exactly if a reload would change nothing", async () => {
    const hash = async (text: string | object, KEY = "sk-key") =>
      (await good(text, { env: { KEY } })).hash;
    const now = await hash(TEXT);
    expect(await hash(`# a comment\n${stringify(TEXT)}`)).toBe(now);
    expect(await hash({ ...TEXT, listen: { port: 8787 } })).toBe(now);
    const reordered = {
      models: TEXT.models,
      middleware: TEXT.middleware,
      providers: TEXT.providers,
    };
    expect(await hash(reordered)).toBe(now);
    const two = (options: object) => hash({ providers: { openai: { with: options } } });
    expect(await two({ api_key: "x", beta: true, label: "l" })).toBe(
      await two({ label: "l", beta: true, api_key: "x" }),
    );
    expect(await hash(TEXT, "sk-rotated")).not.toBe(now);
    expect(await hash({ ...TEXT, shutdown: "1s" })).not.toBe(now);
    expect(await hash({ ...TEXT, models: { a: "openai/y" } })).not.toBe(now);
    expect(
      await hash({ ...TEXT, providers: { x: { use: "openai", ...KEYED.openai }, ...KEYED } }),
    ).not.toBe(now);
  });
});

describe("the same texts in another process", () => {
  it("give the same config, whatever happened to the files", async () => {
    const main = write({
      "gateway.yaml": "include: ./more/*.yaml\nproviders: {}\n",
      "more/a.yaml": 'providers: { openai: { with: { api_key: "${file:../key}" } } }\n',
      "more/b.yaml": "log: { slow_request: 7s }\n",
      "more/.hidden.yaml": "workers: 9\n",
      key: "sk-of-a-file\n",
    });
    const first = await loadConfig(main, { env: {}, loadPlugin: load });
    expect(first.config?.log.slowRequestMs).toBe(7_000);
    rmSync(join(main, ".."), { recursive: true });
    const again = await loadConfig(main, {
      env: {},
      loadPlugin: load,
      recordedTexts: structuredClone(first.texts),
    });
    expect(again.config?.hash).toBe(first.config!.hash);
    expect(again.sources).toEqual(first.sources);
    const without = await loadConfig(main, { env: {}, loadPlugin: load, recordedTexts: new Map() });
    expect(without.problems.map(({ id }) => id)).toEqual(["config/file-missing"]);
  });
});
