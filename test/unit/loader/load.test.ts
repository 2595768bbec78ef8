import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createJiti } from "jiti";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import type { BuiltinPlugins } from "../../../src/loader/resolve-plugin.ts";
import { createLoader, type LoaderOptions } from "../../../src/loader/plugin-loader.ts";
import * as api from "../../../src/plugin/index.ts";

const root = mkdtempSync(join(tmpdir(), "tollgate-loader-"));
afterAll(() => rmSync(root, { recursive: true }));
let folder: string;
let count = 0;
beforeEach(() => {
  folder = join(root, String(count++));
  mkdirSync(folder);
});

const write = (path: string, text: string) => {
  const file = join(folder, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
  return file;
};
const install = (name: string, text: string, manifest: object = {}, entry = "index.js") => {
  const about = { name, version: "1.2.3", type: "module", exports: `./${entry}`, ...manifest };
  write(`node_modules/${name}/package.json`, JSON.stringify(about));
  return write(`node_modules/${name}/${entry}`, text);
};
const definition = (name: string, more = "") =>
  `export default { "~tollgate": "provider", api: 1, name: "${name}", summary: "", setup() {}, ${more} };\n`;

const never = () => Promise.reject(new Error("never"));
const EMPTY: BuiltinPlugins = { provider: {}, frontend: {}, middleware: {}, store: {} };
const load = (use: string, kind: api.PluginKind = "provider", of: Partial<LoaderOptions> = {}) =>
  createLoader({ builtin: EMPTY, hostModules: { "tollgate/plugin": api }, ...of })(
    use,
    kind,
    join(folder, "gateway.yaml"),
  );
const problemOf = async (use: string, kind?: api.PluginKind, of?: Partial<LoaderOptions>) => {
  const result = await load(use, kind, of);
  if (!("problem" in result)) throw new Error("loaded");
  return result.problem;
};
const loaded = async (use: string, kind?: api.PluginKind, of?: Partial<LoaderOptions>) => {
  const result = await load(use, kind, of);
  if ("problem" in result) throw new Error(`${result.problem.id}: ${result.problem.message}`);
  return result;
};

describe("use: accepts", () => {
  it("a path, relative to the file; .ts and .mjs alike", async () => {
    const file = write("plugins/a.ts", `const name: string = "a";\n${definition("a")}`);
    write("plugins/b.mjs", definition("b"));
    write("plugins/c/index.js", definition("c"));
    const a = await loaded("./plugins/a.ts");
    expect([a.definition.name, a.from]).toEqual(["a", file]);
    expect((await loaded(file)).definition).toBe(a.definition);
    expect((await loaded("./plugins/b.mjs")).definition.name).toBe("b");
    expect((await loaded("./plugins/c")).definition.name).toBe("c");
    const fromInside = createLoader({ builtin: EMPTY, hostModules: {} });
    expect(
      await fromInside("../plugins/b.mjs", "provider", join(folder, "conf/x.yaml")),
    ).toHaveProperty("from");
  });
  it("a package by name, a subpath, a scoped package; with its version", async () => {
    install("acme-gateway", definition("acme"), {
      exports: { ".": "./index.js", "./two": "./two.js" },
    });
    write("node_modules/acme-gateway/two.js", definition("two"));
    install("@acme/y", definition("y"));
    const y = await loaded("@acme/y");
    expect([y.definition.name, y.from]).toEqual(["y", "@acme/y@1.2.3"]);
    expect((await loaded("acme-gateway/two")).definition.name).toBe("two");
    expect((await problemOf("acme-gateway/three")).id).toBe("plugin/not-found");
  });
  it("otherwise a built-in plugin, then the conventional package: a built-in cannot be shadowed", async () => {
    install("tollgate-provider-demo", definition("shadow"));
    install("tollgate-provider-ollama", definition("ollama"));
    const builtin: BuiltinPlugins = {
      ...EMPTY,
      provider: {
        demo: async () => ({
          default: { ...api.defineProvider({ api: 1, name: "demo", summary: "", setup: never }) },
        }),
      },
    };
    const demo = await loaded("demo", "provider", { builtin });
    expect([demo.definition.name, demo.from]).toEqual(["demo", "built-in"]);
    expect((await loaded("ollama", "provider", { builtin })).from).toBe(
      "tollgate-provider-ollama@1.2.3",
    );
    expect((await problemOf("ollama", "middleware", { builtin })).id).toBe("plugin/not-found");
  });
  it("nothing else: no URL, no query, no Node module, no escape from the folder", async () => {
    for (const use of [
      "https://x.test/p.js",
      "http://x.test",
      "//x.test/p.js",
      "file:///etc/x.js",
      "data:text/javascript,export default 1",
      "node:child_process",
      "blob:x",
      "./a.ts?x",
      "./a.ts#x",
      "./a%2e.ts",
      ".\\a.ts",
      "./a\u0000.ts",
      "a/../../b",
      "@x",
      "@x/../y",
      "a@1.0.0",
      "@a/b@1",
      "A",
      "a--b",
      "",
      " ",
      "a b",
      "~/a.ts",
    ])
      expect((await problemOf(use)).id, use).toBe("plugin/bad-specifier");
    for (const use of [
      "fs",
      "child-process",
      "./none.ts",
      "/etc/none.ts",
      "a/b",
      "toString",
      "constructor",
    ])
      expect((await problemOf(use)).id, use).toMatch(/plugin\/(not-found|bad-specifier)/);
  });
  it("no NODE_PATH, and no link out of its package", async () => {
    const outside = write("elsewhere/tollgate-provider-evil/index.js", definition("evil"));
    write("elsewhere/tollgate-provider-evil/package.json", '{"name":"tollgate-provider-evil"}');
    const script = `
      import { createLoader } from ${JSON.stringify(new URL("../../../src/loader/plugin-loader.ts", import.meta.url).href)};
      const load = createLoader({ builtin: { provider: {} }, host: {} });
      console.log(JSON.stringify(await load("evil", "provider", ${JSON.stringify(join(folder, "gateway.yaml"))})));`;
    const out = execFileSync(
      process.execPath,
      ["--conditions=tollgate-source", "--input-type=module", "-e", script],
      {
        env: { ...process.env, NODE_PATH: join(folder, "elsewhere"), NODE_OPTIONS: "" },
        encoding: "utf8",
      },
    );
    expect(JSON.parse(out).problem.id).toBe("plugin/not-found");
    install("tollgate-provider-link", "", { exports: "./out.js" });
    symlinkSync(outside, join(folder, "node_modules/tollgate-provider-link/out.js"));
    expect((await problemOf("link")).id).toBe("plugin/not-found");
  });
});

describe("the loaded module", () => {
  const failing: [string, string, RegExp, RegExp][] = [
    [
      "export const x = 1;",
      "plugin/no-default-export",
      /does not export a plugin as its default export/,
      /export default/,
    ],
    ["export default 7;", "plugin/no-default-export", /./, /export default/],
    ["export default { name: 'x', setup() {} };", "plugin/no-default-export", /./, /define/],
    [
      definition("x").replace("export default", "export const mine ="),
      "plugin/no-default-export",
      /./,
      /"mine"/,
    ],
    [
      definition("x").replace('"provider"', '"store"'),
      "plugin/wrong-kind",
      /is a store, not a provider/,
      /move it to store/,
    ],
    [
      definition("x").replace("api: 1", "api: 2"),
      "plugin/api-mismatch",
      /API version 2.*API version 1/,
      /upgrade tollgate/,
    ],
    [
      definition("x").replace("api: 1", "api: 0"),
      "plugin/api-mismatch",
      /API version 0.*API version 1/,
      /upgrade the plugin/,
    ],
    [definition("x").replace("api: 1,", ""), "plugin/api-mismatch", /./, /upgrade the plugin/],
    [definition("Bad Name"), "plugin/bad-definition", /Bad Name/, /^$/],
    [definition("x").replace("setup() {}", "set: 1"), "plugin/bad-definition", /no setup/, /^$/],
    [
      definition("x", "options: { type: 'object' }"),
      "plugin/bad-schema",
      /options.*additionalProperties: false/,
      /^$/,
    ],
    [
      definition("x", "options: { type: 'string' }"),
      "plugin/bad-schema",
      /type must be object/,
      /^$/,
    ],
    [
      definition(
        "x",
        "options: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', additionalProperties: false }",
      ),
      "plugin/bad-schema",
      /draft-07/,
      /^$/,
    ],
    [
      definition(
        "x",
        "credential: { type: 'object', additionalProperties: false, properties: { a: { type: 'strnig' } } }",
      ),
      "plugin/bad-schema",
      /credential/,
      /^$/,
    ],
    [
      definition(
        "x",
        "options: { type: 'object', additionalProperties: false, properties: { a: { format: 'nope', type: 'string' } } }",
      ),
      "plugin/bad-schema",
      /nope/,
      /^$/,
    ],
    [
      definition(
        "x",
        "options: { type: 'object', additionalProperties: false, properties: { key: {} } }, credential: { type: 'object', additionalProperties: false, properties: { key: {} } }",
      ),
      "plugin/bad-definition",
      /"key" is both an option and a credential field/,
      /^$/,
    ],
    [
      definition("x", "stabilty: 'stable'"),
      "plugin/unknown-member",
      /unknown member "stabilty"/,
      /did you mean "stability"/,
    ],
    ["throw new Error('boom at import');", "plugin/import-failed", /boom at import/, /^$/],
    ["throw 'a string';", "plugin/import-failed", /a string/, /^$/],
    ["export default {;", "plugin/import-failed", /./, /^$/],
    ["import 'not-there'; export default 1;", "plugin/import-failed", /not-there/, /^$/],
  ];
  it.each(failing)("%s", async (text, id, message, hint) => {
    const file = write("p.mjs", text);
    const problem = await problemOf("./p.mjs");
    expect(problem.id).toBe(id);
    expect(problem.message).toMatch(message);
    expect(problem.message).toContain(file);
    expect(problem.hint ?? "").toMatch(hint);
  });
  it("a middleware declares where it sends content", async () => {
    write("m.mjs", definition("m").replace('"provider"', '"middleware"'));
    expect((await problemOf("./m.mjs", "middleware")).message).toMatch(/sends/);
  });
  it("an unknown plugin is reported with the install command and the nearest built-in name", async () => {
    const builtin: BuiltinPlugins = { ...EMPTY, provider: { openai: never, anthropic: never } };
    expect(await problemOf("opnai", "provider", { builtin })).toMatchObject({
      id: "plugin/not-found",
      hint: 'did you mean "openai"? If not, run: npm i tollgate-provider-opnai',
    });
    expect((await problemOf("otel", "middleware")).hint).toBe("npm i tollgate-middleware-otel");
    expect((await problemOf("@acme/y/deep")).hint).toBe("npm i @acme/y");
    expect((await problemOf("tollgate-provider-x")).hint).toBe("write use: x");
  });
  it("an import that does not end is aborted", async () => {
    write("slow.mjs", `await new Promise(() => {});\n${definition("slow")}`);
    expect((await problemOf("./slow.mjs", "provider", { importTimeoutMs: 20 })).id).toBe(
      "plugin/import-slow",
    );
  });
  it("a failed import is repeated, and a successful one is kept", async () => {
    const of = createLoader({ builtin: EMPTY, hostModules: {} });
    const from = join(folder, "gateway.yaml");
    expect(await of("./late.mjs", "provider", from)).toHaveProperty("problem");
    write("late.mjs", definition("late"));
    const first = await of("./late.mjs", "provider", from);
    expect(first).toHaveProperty("definition");
    expect(await of("./late.mjs", "provider", from)).toBe(first);
    expect(await of("./late.mjs", "store", from)).toHaveProperty("problem.id", "plugin/wrong-kind");
  });
  it("CommonJS compiled from ESM is accepted", async () => {
    const text = definition("cjs").replace(
      "export default",
      "exports.__esModule = true; exports.default =",
    );
    install("tollgate-provider-cjs", text, { type: "commonjs" });
    expect((await loaded("cjs")).definition.name).toBe("cjs");
  });
});

it.each(["provider", "frontend", "observer", "store"] as const)(
  "as %s, isolation is rejected with an explanation, before its code runs",
  async (kind) => {
    write("p.mjs", `throw new Error("It has run.");`);
    for (const use of ["./p.mjs", "unix:./p.sock"]) {
      const from = join(folder, "gateway.yaml");
      const found = await createLoader({ builtin: EMPTY, hostModules: {} })(
        use,
        kind,
        from,
        undefined,
        "child",
      );
      expect(found).toMatchObject({
        problem: {
          id: "config/isolated-kind",
          message: expect.stringContaining("only middleware can run outside the gateway"),
        },
      });
    }
  },
);

it("an unsupported isolation is reported once, at its key", async () => {
  write("p.mjs", `throw new Error("It has run.");`);
  const file = join(folder, "gateway.yaml");
  const text = [
    "frontends: [{ use: ./p.mjs, isolate: child }]",
    "providers:",
    "  acme:",
    "    use: ./p.mjs",
    "    isolate: child",
    "",
  ].join("\n");
  const load = createLoader({ builtin: EMPTY, hostModules: {} });
  const { problems } = await loadConfig(file, { env: {}, loadPlugin: load, textOverride: text });
  const placed = problems.filter(({ line }) => line > 0);
  expect(placed.map(({ line, column, id, hint }) => [line, column, id, hint])).toEqual([
    [1, 29, "config/unknown-key", "only middleware can run outside the gateway"],
    [5, 5, "config/unknown-key", "only middleware can run outside the gateway"],
  ]);
});

describe("one copy of the contract", () => {
  it("is provided to a plugin that cannot resolve it, in TypeScript and JavaScript", async () => {
    const source = (ts: boolean) => `
      import { defineProvider, fail${ts ? ", type Infer" : ""} } from "tollgate/plugin";
      const name${ts ? ": string" : ""} = "lent";
      export default defineProvider({ api: 1, name, summary: "", setup: () => ({ endpoints: [] }), check: () => [{ path: "", message: String(fail) }] });`;
    write("lent.ts", source(true));
    write("lent.mjs", source(false));
    install("tollgate-provider-lent", source(false));
    for (const use of ["./lent.ts", "./lent.mjs", "lent"]) {
      const { definition } = await loaded(use);
      expect(definition["~tollgate"]).toBe("provider");
      expect(definition.check()[0].message).toBe(String(api.fail));
    }
  });
});

describe("the cache of transformed sources", () => {
  const PLUGIN = `import { defineProvider } from "tollgate/plugin";
    export default defineProvider({ api: 1, name: "honest", summary: "", setup: () => ({ endpoints: [] }) } as const);`;
  const EVIL = (text: string) => text.replace(/honest/g, "poison");
  const naive = (cache: string) =>
    createJiti(import.meta.filename, {
      fsCache: cache,
      moduleCache: false,
      interopDefault: false,
      virtualModules: { "tollgate/plugin": api },
    });
  const poisoned = expect.objectContaining({
    default: expect.objectContaining({ name: "poison" }),
  });
  /**
   * Fills a cache like jiti, then replaces its code with the suffix that jiti checks: a process
   * that uses the cache runs it.
   */
  async function poison(cache: string, file: string) {
    await naive(cache).import(file);
    for (const name of readdirSync(cache)) {
      const text = readFileSync(join(cache, name), "utf8");
      if (text.includes(file) || text.includes("honest"))
        writeFileSync(join(cache, name), EVIL(text));
    }
    expect(await naive(cache).import(file)).toEqual(poisoned);
  }

  it("is a private directory with mode 0700; files in the shared one are not executed", async () => {
    const shared = join(tmpdir(), "jiti");
    const before = new Set(existsSync(shared) ? readdirSync(shared) : []);
    const stateDir = join(folder, "state");
    try {
      for (const [name, of] of [
        ["none", {}],
        ["own", { stateDir }],
      ] as const) {
        await poison(shared, write(`${name}.ts`, PLUGIN));
        expect((await loaded(`./${name}.ts`, "provider", of)).definition.name).toBe("honest");
      }
      const cache = join(stateDir, "cache/jiti");
      expect(statSync(cache).mode & 0o777).toBe(0o700);
      expect(readdirSync(cache)).toHaveLength(1);
    } finally {
      for (const name of readdirSync(shared)) if (!before.has(name)) rmSync(join(shared, name));
    }
  });

  it("is reused by the next start", async () => {
    const stateDir = join(folder, "state");
    const cache = join(stateDir, "cache/jiti");
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    await poison(cache, write("p.ts", PLUGIN));
    // So no other user may write there.
    expect((await loaded("./p.ts", "provider", { stateDir })).definition.name).toBe("poison");
  });

  it.each(["state", "state/cache", "state/cache/jiti"])(
    "is not used if others can write to %s",
    async (loose) => {
      const stateDir = join(folder, "state");
      const cache = join(stateDir, "cache/jiti");
      mkdirSync(cache, { recursive: true, mode: 0o700 });
      await poison(cache, write("p.ts", PLUGIN));
      chmodSync(join(folder, loose), 0o777);
      expect((await loaded("./p.ts", "provider", { stateDir })).definition.name).toBe("honest");
    },
  );

  it("is not used if it is a link", async () => {
    const target = join(folder, "target");
    mkdirSync(target);
    await poison(target, write("p.ts", PLUGIN));
    mkdirSync(join(folder, "state/cache"), { recursive: true });
    symlinkSync(target, join(folder, "state/cache/jiti"));
    const of = { stateDir: join(folder, "state") };
    expect((await loaded("./p.ts", "provider", of)).definition.name).toBe("honest");
  });

  it("ignores JITI_ variables", async () => {
    write("p.ts", `import "dep";\n${PLUGIN}`);
    const evil = write("evil.ts", "globalThis.evil = true;");
    const set = {
      JITI_ALIAS: JSON.stringify({ dep: evil }),
      JITI_FS_CACHE: "true",
      JITI_DEBUG: "1",
    };
    Object.assign(process.env, set);
    try {
      expect((await problemOf("./p.ts")).id).toBe("plugin/import-failed");
      expect(globalThis).not.toHaveProperty("evil");
    } finally {
      for (const name of Object.keys(set)) delete process.env[name];
    }
  });
});
