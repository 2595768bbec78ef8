// Everything that is looked at of a plugin's package, in the order in which its author mends it.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HookCases } from "../../testing/hook-tester.ts";
import { kit } from "../kit.ts";
import { finding, findingOf, type PackageFinding } from "./finding.ts";
import { liveFindings } from "./live.ts";
import {
  manifestFindings,
  manifestIn,
  mountingOf,
  packedFindings,
  type Mounting,
  type PackedFiles,
  type PluginManifest,
} from "./manifest.ts";
import { withTable } from "./option-table.ts";
import { exportFindings, exportsOf, imported, nameFindings, type Imported } from "./plugins.ts";

export interface Judged {
  readonly name: string;
  readonly version: string;
  readonly plugins: readonly string[];
  readonly findings: readonly PackageFinding[];
}

/** `write`: the table of its README is written anew. `live`: its providers are asked, for money. */
export async function judged(
  folder: string,
  { write, live }: { readonly write: boolean; readonly live: boolean },
): Promise<Judged> {
  const manifest = manifestIn(folder);
  const { brought, findings } = await surface(folder, { write });
  return {
    name: manifest.name ?? "",
    version: manifest.version ?? "",
    plugins: brought.plugins.map(
      ({ definition }) => `${definition["~tollgate"]} ${definition.name}`,
    ),
    findings: [
      ...findings,
      ...(await contract(folder, manifest, brought)),
      ...(live ? await liveFindings(manifest, brought.plugins) : []),
    ],
  };
}

/** What shows before anything but its import has run. `packs`: npm is asked what it would publish. */
export async function surface(
  folder: string,
  { write = false, packs = true } = {},
): Promise<{ readonly brought: Imported; readonly findings: readonly PackageFinding[] }> {
  const manifest = manifestIn(folder);
  const paths = exportsOf(manifest);
  const brought = await imported(folder, paths);
  const findings = [
    ...manifestFindings(folder, manifest),
    ...exportFindings(folder, paths),
    ...(packs ? packed(folder) : []),
    ...brought.findings,
    ...nameFindings(manifest, brought),
    readme(folder, brought, write),
  ];
  return { brought, findings };
}

/** Nothing of the package is run for it. */
function packed(folder: string): PackageFinding[] {
  const { status, stdout, stderr } = spawnSync(
    "npm",
    ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"],
    { cwd: folder, encoding: "utf8" },
  );
  if (status !== 0)
    return [{ check: "package: packs", wrong: `npm pack fails: ${String(stderr).trim()}` }];
  const said = JSON.parse(stdout) as readonly Packing[] | { readonly [name: string]: Packing };
  const [first] = Object.values(said) as Packing[];
  const all: PackedFiles = {
    size: first?.unpackedSize ?? 0,
    files: (first?.files ?? []).map(({ path }) => path),
  };
  return [{ check: "package: packs" }, ...packedFindings(all)];
}

interface Packing {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function readme(folder: string, { plugins }: Imported, write: boolean): PackageFinding {
  const check = "readme: the table of its options";
  const file = join(folder, "README.md");
  if (!existsSync(file)) return { check, wrong: "there is no README.md" };
  const page = readFileSync(file, "utf8");
  const fresh = withTable(
    page,
    plugins.map(({ definition }) => definition),
  );
  if (fresh === undefined)
    return { check, wrong: "there is no place for it: <!-- options --> and <!-- /options -->" };
  if (write && fresh !== page) writeFileSync(file, fresh);
  return finding(check, write || fresh === page, "it is old: npx tollgate check-plugin . --write");
}

const casesIn = (file: string): HookCases => JSON.parse(readFileSync(file, "utf8")) as HookCases;

async function contract(
  folder: string,
  { tollgate = {} }: PluginManifest,
  { plugins, protocols }: Imported,
): Promise<PackageFinding[]> {
  const { conformance, hookTester, protocolLaws, storeConformance, storeIn } = await kit();
  const placed = ({ recordings, live: _, cases: _cases, ...more }: Mounting): Mounting => ({
    ...more,
    ...(recordings === false && { recordings }),
    ...(typeof recordings === "string" && { recordings: join(folder, recordings) }),
  });
  const checks = [
    ...protocols.flatMap((protocol) => {
      const { recordings } = placed(tollgate);
      return protocolLaws(protocol, typeof recordings === "string" ? { recordings } : {});
    }),
    ...plugins.flatMap((plugin) => {
      const mounting = mountingOf(plugin, tollgate);
      return [
        ...conformance(plugin.definition, {
          ...placed(mounting),
          module: pathToFileURL(plugin.file),
        }),
        ...(plugin.definition["~tollgate"] === "middleware" && mounting.cases !== undefined
          ? hookTester(plugin.definition, casesIn(join(folder, mounting.cases)))
          : []),
        ...(plugin.definition["~tollgate"] === "store"
          ? storeConformance(storeIn(plugin.definition, mounting.with))
          : []),
      ];
    }),
  ];
  const findings: PackageFinding[] = [];
  for (const each of checks) findings.push(await findingOf(`contract: ${each.name}`, each));
  return findings;
}
