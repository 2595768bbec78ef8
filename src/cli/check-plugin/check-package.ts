// Runs all checks of a plugin's package, in the order in which an author fixes the findings.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HookCases } from "../../testing/hook-tester.ts";
import { importTestingKit } from "../support/testing-kit.ts";
import { createFinding, runCheck, type PackageFinding } from "./finding.ts";
import { checkLive } from "./live-checks.ts";
import {
  checkManifest,
  readManifest,
  checkOptionsOf,
  checkPackedList,
  type PluginCheckOptions,
  type PackedFiles,
  type PluginManifest,
} from "./manifest.ts";
import { updateOptionTable } from "./option-table.ts";
import {
  checkExports,
  listExports,
  importExports,
  checkNames,
  type ImportedPackage,
} from "./package-exports.ts";

export interface PackageReport {
  readonly name: string;
  readonly version: string;
  readonly plugins: readonly string[];
  readonly findings: readonly PackageFinding[];
}

/**
 * Runs all checks.
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

/** Checks what `npm pack` would publish. Runs none of the package's scripts. */
function checkPackedFiles(folder: string): PackageFinding[] {
  const { status, stdout, stderr } = spawnSync(
    "npm",
    ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"],
    { cwd: folder, encoding: "utf8" },
  );
  if (status !== 0)
    return [{ check: "package: packs", problem: `npm pack failed: ${String(stderr).trim()}` }];
  const said = JSON.parse(stdout) as
    | readonly NpmPackOutput[]
    | { readonly [name: string]: NpmPackOutput };
  const [first] = Object.values(said) as NpmPackOutput[];
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
