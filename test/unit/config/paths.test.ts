// Relative paths of a config: each is relative to its file, in every option of every plugin.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { builtin } from "../../../plugins/index.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { formatProblems } from "../../../src/config/problem-report.ts";
import { createLoader } from "../../../src/loader/plugin-loader.ts";

const load = createLoader({ builtin: builtin as never, hostModules: {} });
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-paths-"));
  mkdirSync(join(folder, "more"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function configOf(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { config, problems } = await loadConfig(join(folder, "gateway.yaml"), {
    env: {},
    loadPlugin: load,
  });
  expect(formatProblems(problems.filter(({ severity }) => severity === "error"))).toBe("");
  return config!;
}

const OPTIONS = `middleware:
  - auth
  - use: jwt
    with: { issuers: { a: { issuer: "https://a.example", audience: [b], jwks_file: keys.json } } }
  - zdr
  - limits
  - usage
observers: [{ use: access-log, with: { file: access.log } }]
store: { use: sqlite, with: { file: ./data/ledger.db } }
listen: { host: 127.0.0.1, port: 0, tls: { cert: cert.pem, key: key.pem } }
state_dir: state
`;

it.each([
  ["gateway.yaml", ""],
  ["more/more.yaml", "more"],
])("paths in %s are relative to its folder", async (file, place) => {
  const providers = "providers: { demo: { use: demo } }\n";
  const files =
    place === ""
      ? { "gateway.yaml": OPTIONS + providers }
      : { "gateway.yaml": `include: more/more.yaml\n${providers}`, [file]: OPTIONS };
  const config = await configOf(files);
  const at = (path: string) => join(folder, place, path);
  const jwt = config.middleware.find(({ use }) => use === "jwt")!.options as any;
  expect(jwt.issuers.a.jwks_file).toBe(at("keys.json"));
  expect(config.observers[0]!.options["file"]).toBe(at("access.log"));
  expect(config.store.options["file"]).toBe(at("data/ledger.db"));
  expect(config.listen[0]).toMatchObject({ tls: { cert: at("cert.pem"), key: at("key.pem") } });
  expect(config.stateDir).toBe(at("state"));
});

/** Every option of every built-in plugin, by its path. */
function* options(schema: any, at: string): Generator<readonly [string, any]> {
  if (typeof schema !== "object" || schema === null) return;
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    yield [`${at}.${name}`, each];
    yield* options(each, `${at}.${name}`);
  }
  for (const part of ["items", "additionalProperties", "then", "else"])
    yield* options(schema[part], `${at}.${part}`);
  for (const part of ["anyOf", "oneOf", "allOf"])
    for (const each of schema[part] ?? []) yield* options(each, at);
}

it("every option with a path is marked", async () => {
  const found: string[] = [];
  const marked: string[] = [];
  const all = Object.values(builtin as Record<string, Record<string, () => Promise<any>>>);
  for (const [key, plugin] of all.flatMap((kind) => Object.entries(kind))) {
    const { default: definition } = await plugin();
    for (const schema of [definition.options, definition.credential])
      for (const [place, each] of options(schema, key)) {
        if (each["x-path"] === true) marked.push(place);
        const name = place.slice(place.lastIndexOf(".") + 1);
        if (/(^|_)(file|folder|dir|directory|path|cert|ca)$/.test(name)) found.push(place);
      }
  }
  expect(found.length).toBeGreaterThan(2);
  expect(found.filter((place) => !marked.includes(place))).toEqual([]);
});
