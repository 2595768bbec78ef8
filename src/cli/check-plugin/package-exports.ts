// Imports each path of a package's `exports`, as Node.js resolves it, and collects the exported
// plugins and protocols.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Definition, PluginKind } from "../../plugin/define.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { createFinding, type PackageFinding, type PluginManifest } from "./manifest.ts";

export interface ExportedPath {
  /** Export path: "." or "./provider". */
  readonly path: string;
  /** Imported file. `types` is its declaration file. */
  readonly file: string;
  readonly types: string | undefined;
}

export function listExports({ exports }: PluginManifest): ExportedPath[] {
  const paths: [string, unknown][] =
    typeof exports === "object" && exports !== null && "." in exports
      ? Object.entries(exports)
      : [[".", exports]];
  return paths.flatMap(([path, target]) => {
    const { types, ...others } = (
      typeof target === "object" && target !== null ? target : { default: target }
    ) as { readonly [condition: string]: unknown };
    const file = [others["node"], others["import"], others["default"]].find(
      (one) => typeof one === "string",
    );
    if (typeof file !== "string" || path.endsWith(".json") || path.includes("*")) return [];
    return [{ path, file, types: typeof types === "string" ? types : undefined }];
  });
}

export function checkExports(folder: string, paths: readonly ExportedPath[]): PackageFinding[] {
  const missing = paths.filter(({ file }) => !existsSync(join(folder, file)));
  const untyped = paths.filter(({ types }) => !types || !existsSync(join(folder, types)));
  const source = paths.filter(({ file }) => /\.[mc]?ts$/.test(file));
  return [
    createFinding("exports: there is one", paths.length > 0, 'package.json has no "exports"'),
    createFinding(
      "exports: built",
      missing.length === 0,
      `${missing.map(({ file }) => file).join(", ")} is missing: run npm run build`,
    ),
    createFinding(
      "exports: javascript",
      source.length === 0,
      `${source.map(({ file }) => file).join(", ")} is TypeScript, which Node does not load from node_modules: compile it`,
    ),
    createFinding(
      "exports: types",
      untyped.length === 0,
      `${untyped.map(({ path }) => path).join(", ")} has no types: { "types": "./dist/index.d.ts", "default": … }`,
    ),
  ];
}

export interface ExportedPlugin {
  readonly path: string;
  readonly file: string;
  readonly definition: Definition;
}

export interface ImportedPackage {
  readonly plugins: readonly ExportedPlugin[];
  readonly protocols: readonly Protocol[];
  readonly findings: readonly PackageFinding[];
}

export async function importExports(
  folder: string,
  paths: readonly ExportedPath[],
): Promise<ImportedPackage> {
  const plugins: ExportedPlugin[] = [];
  const protocols: Protocol[] = [];
  const findings: PackageFinding[] = [];
  for (const { path, file } of paths) {
    const place = join(folder, file);
    if (!existsSync(place) || /\.[mc]?ts$/.test(file)) continue;
    try {
      const module = (await import(pathToFileURL(place).href)) as Record<string, unknown>;
      const { default: main } = module;
      if (isDefinition(main)) {
        const { validateDefinition } = await import("../../loader/validate-definition.ts");
        const judged = validateDefinition(module, main["~tollgate"] as PluginKind, file);
        findings.push(
          "words" in judged
            ? { check: `definition ${path}`, problem: judged.words.message }
            : { check: `definition ${path}` },
        );
        plugins.push({ path, file: place, definition: main });
      } else protocols.push(...Object.values(module).flatMap(findProtocol));
    } catch (error) {
      findings.push({
        check: `definition ${path}`,
        problem: `the import failed: ${String(error)}`,
      });
    }
  }
  findings.push(
    createFinding(
      "exports: a plugin",
      plugins.length + protocols.length > 0,
      "no export is a plugin: a plugin's default export is created by defineProvider " +
        "or a similar function",
    ),
  );
  return { plugins, protocols, findings };
}

const isDefinition = (value: unknown): value is Definition =>
  typeof value === "object" && value !== null && "~tollgate" in value;

/**
 * Calls an exported function without parameters and returns the protocol that it creates, if any.
 */
function findProtocol(value: unknown): Protocol[] {
  if (typeof value !== "function" || value.length > 0) return [];
  try {
    const made: unknown = (value as () => unknown)();
    return typeof made === "object" && made !== null && "operationSpec" in made && "id" in made
      ? [made as Protocol]
      : [];
  } catch {
    return [];
  }
}

/** Checks that the package is named for the plugin that it exports as `.`. */
export function checkNames(
  { name = "" }: PluginManifest,
  { plugins }: ImportedPackage,
): PackageFinding[] {
  const bare = name.split("/").at(-1) ?? "";
  return plugins
    .filter(({ path }) => path === ".")
    .map(({ definition }) => {
      const meant = `tollgate-${definition["~tollgate"]}-${definition.name}`;
      return createFinding(
        "manifest: named for its plugin",
        bare === meant,
        `the package "${name}" contains the ${definition["~tollgate"]} "${definition.name}": rename it to ${meant}`,
      );
    });
}
