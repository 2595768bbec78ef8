// Runs all checks of a plugin's package, in the order in which an author fixes the findings.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HookCases } from "../../testing/hook-tester.ts";
import { importTestingKit } from "../support/shared-modules.ts";
import {
  createFinding,
  runCheck,
  type PackageFinding,
  checkManifest,
  readManifest,
  checkOptionsOf,
  checkPackedList,
  type PluginCheckOptions,
  type PackedFiles,
  type PluginManifest,
} from "./manifest.ts";
import {
  checkExports,
  listExports,
  importExports,
  checkNames,
  type ImportedPackage,
  type ExportedPlugin,
} from "./package-exports.ts";
import type { Definition } from "../../plugin/define.ts";

export interface PackageReport {
  readonly name: string;
  readonly version: string;
  readonly plugins: readonly string[];
  readonly findings: readonly PackageFinding[];
}

/**
 * @param write Whether to rewrite the option table in the package's README.
 * @param live Whether to send requests to its providers, which costs money.
 */
export async function checkPackage(
  folder: string,
  { write, live }: { readonly write: boolean; readonly live: boolean },
): Promise<PackageReport> {
  const manifest = readManifest(folder);
  const { brought, findings } = await checkSurface(folder, { write });
  return {
    name: manifest.name ?? "",
    version: manifest.version ?? "",
    plugins: brought.plugins.map(
      ({ definition }) => `${definition["~tollgate"]} ${definition.name}`,
    ),
    findings: [
      ...findings,
      ...(await checkContract(folder, manifest, brought)),
      ...(live ? await checkLive(manifest, brought.plugins) : []),
    ],
  };
}

/**
 * Runs the checks that execute no plugin code beyond its import.
 * @param packs Whether to run `npm pack --dry-run` and check its file list.
 */
export async function checkSurface(
  folder: string,
  { write = false, packs = true } = {},
): Promise<{ readonly brought: ImportedPackage; readonly findings: readonly PackageFinding[] }> {
  const manifest = readManifest(folder);
  const paths = listExports(manifest);
  const brought = await importExports(folder, paths);
  const findings = [
    ...checkManifest(folder, manifest),
    ...checkExports(folder, paths),
    ...(packs ? checkPackedFiles(folder) : []),
    ...brought.findings,
    ...checkNames(manifest, brought),
    checkReadme(folder, brought, write),
  ];
  return { brought, findings };
}

/** Checks what `npm pack` would publish. Scripts of the package are not run. */
function checkPackedFiles(folder: string): PackageFinding[] {
  const { status, stdout, stderr } = spawnSync(
    "npm",
    ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"],
    { cwd: folder, encoding: "utf8" },
  );
  if (status !== 0)
    return [{ check: "package: packs", problem: `npm pack failed: ${String(stderr).trim()}` }];
  const output = JSON.parse(stdout) as
    | readonly NpmPackOutput[]
    | { readonly [name: string]: NpmPackOutput };
  const [first] = Object.values(output) as NpmPackOutput[];
  const all: PackedFiles = {
    size: first?.unpackedSize ?? 0,
    files: (first?.files ?? []).map(({ path }) => path),
  };
  return [{ check: "package: packs" }, ...checkPackedList(all)];
}

interface NpmPackOutput {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function checkReadme(folder: string, { plugins }: ImportedPackage, write: boolean): PackageFinding {
  const check = "readme: the table of its options";
  const file = join(folder, "README.md");
  if (!existsSync(file)) return { check, problem: "README.md is missing" };
  const page = readFileSync(file, "utf8");
  const fresh = updateOptionTable(
    page,
    plugins.map(({ definition }) => definition),
  );
  if (fresh === undefined)
    return {
      check,
      problem: "the README has no place for the table: add <!-- options --> and <!-- /options -->",
    };
  if (write && fresh !== page) writeFileSync(file, fresh);
  return createFinding(
    check,
    write || fresh === page,
    "the table is out of date: run npx tollgate check-plugin . --write",
  );
}

const readCases = (file: string): HookCases => JSON.parse(readFileSync(file, "utf8")) as HookCases;

async function checkContract(
  folder: string,
  { tollgate = {} }: PluginManifest,
  { plugins, protocols }: ImportedPackage,
): Promise<PackageFinding[]> {
  const { conformanceChecks, hookChecks, protocolChecks, storeChecks, createStoreFactory } =
    await importTestingKit();
  const placed = ({
    recordings,
    live: _,
    cases: _cases,
    ...more
  }: PluginCheckOptions): PluginCheckOptions => ({
    ...more,
    ...(recordings === false && { recordings }),
    ...(typeof recordings === "string" && { recordings: join(folder, recordings) }),
  });
  const checks = [
    ...protocols.flatMap((protocol) => {
      const { recordings } = placed(tollgate);
      return protocolChecks(protocol, typeof recordings === "string" ? { recordings } : {});
    }),
    ...plugins.flatMap((plugin) => {
      const mounting = checkOptionsOf(plugin, tollgate);
      return [
        ...conformanceChecks(plugin.definition, {
          ...placed(mounting),
          module: pathToFileURL(plugin.file),
        }),
        ...(plugin.definition["~tollgate"] === "middleware" && mounting.cases !== undefined
          ? hookChecks(plugin.definition, readCases(join(folder, mounting.cases)))
          : []),
        ...(plugin.definition["~tollgate"] === "store"
          ? storeChecks(createStoreFactory(plugin.definition, mounting.with))
          : []),
      ];
    }),
  ];
  const findings: PackageFinding[] = [];
  for (const each of checks) findings.push(await runCheck(`contract: ${each.name}`, each));
  return findings;
}

// Generates the option table of a plugin's README from its schema, so that the two cannot differ.

interface OptionSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: OptionSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly "x-secret"?: boolean;
}

const BEGIN_MARKER = "<!-- options -->";
const END_MARKER = "<!-- /options -->";

/** Returns the lines between the markers. A package may contain several plugins. */
function optionTable(definitions: readonly Definition[]): string {
  const rows = definitions.flatMap((definition) => [
    ...optionRows(definition.options),
    ...optionRows("credential" in definition ? definition.credential : undefined),
  ]);
  if (rows.length === 0) return "This plugin has no options.";
  return ["| option | type | default | description |", "|---|---|---|---|", ...rows].join("\n");
}

function optionRows(schema: unknown): string[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, OptionSchema>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, one]) => {
    const otherwise = required.includes(name)
      ? "must be given"
      : one.default === undefined
        ? "–"
        : `\`${JSON.stringify(one.default)}\``;
    const secret = one["x-secret"] ? " Secret: set it as `${env:…}`." : "";
    const description = `${one.description ?? ""}.${secret}`
      .replaceAll("|", "\\|")
      .replaceAll("\n", " ");
    return `| \`${name}\` | ${formatType(one)} | ${otherwise} | ${description} |`;
  });
}

function formatType({ type, enum: values, items }: OptionSchema): string {
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const types = [type ?? "any"].flat();
  return types
    .map((one) => (one === "array" && items ? `list of ${formatType(items)}` : one))
    .join(" or ");
}

/** Returns the page with the current table, or undefined if the page has no markers. */
export function updateOptionTable(
  page: string,
  definitions: readonly Definition[],
): string | undefined {
  const from = page.indexOf(BEGIN_MARKER);
  const to = page.indexOf(END_MARKER, from);
  if (from < 0 || to < 0) return undefined;
  return `${page.slice(0, from + BEGIN_MARKER.length)}\n${optionTable(definitions)}\n${page.slice(to)}`;
}

// Sends the requests of `--live` to the provider: to the models that package.json names, with the
// credential from the environment.

async function checkLive(
  { tollgate = {} }: PluginManifest,
  plugins: readonly ExportedPlugin[],
): Promise<PackageFinding[]> {
  const providers = plugins.filter(({ definition }) => definition["~tollgate"] === "provider");
  if (providers.length === 0)
    return [
      createFinding(
        "live: a provider",
        false,
        "the package has no provider, and only providers are tested",
      ),
    ];
  const findings: PackageFinding[] = [];
  for (const plugin of providers)
    findings.push(...(await checkLivePlugin(plugin, checkOptionsOf(plugin, tollgate))));
  return findings;
}

async function checkLivePlugin(
  { definition }: ExportedPlugin,
  { live = [], with: options = {} }: PluginCheckOptions,
): Promise<PackageFinding[]> {
  const { fields, missing } = credentialFromEnv(definition as PluginWithCredential);
  const unpriced = live.some(
    ({ model, price }) =>
      typeof model !== "string" ||
      typeof price?.input !== "number" ||
      typeof price.output !== "number",
  );
  const needed = [
    createFinding(
      `live: ${definition.name}: models`,
      live.length > 0 && !unpriced,
      "package.json must list the models to call and the price of a million tokens: " +
        '"tollgate": { "live": [{ "model": "large-2", "price": { "input": 3, "output": ' +
        "15 } }] }",
    ),
    createFinding(
      `live: ${definition.name}: credential`,
      missing.length === 0,
      `no request was sent: set ${missing.join(", ")} in the environment`,
    ),
  ];
  if (needed.some(({ problem }) => problem !== undefined)) return needed;
  const { liveCheck } = await importTestingKit();
  for (const { model, price, capUsd } of live) {
    const of = { model, price, with: options, credential: fields, ...(capUsd && { capUsd }) };
    needed.push(await runCheck(`live: ${model}`, liveCheck(definition, of)));
  }
  return needed;
}

interface PluginWithCredential {
  readonly name: string;
  readonly credential?: {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
}

/**
 * Reads the credential from variables that are named as in the templates: `api_key` of the provider
 * acme is ACME_API_KEY.
 */
function credentialFromEnv({ name, credential = {} }: PluginWithCredential) {
  const named = (field: string) => `${name}_${field}`.replace(/\W/g, "_").toUpperCase();
  const fields: Record<string, string> = {};
  for (const field in credential.properties) {
    const value = process.env[named(field)];
    if (value) fields[field] = value;
  }
  const missing = (credential.required ?? []).filter((field) => !(field in fields)).map(named);
  return { fields, missing };
}
