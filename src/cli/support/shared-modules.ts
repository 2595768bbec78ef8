// Modules that are shared with plugins, so that a plugin and the gateway use one copy of the
// contract.
import { existsSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { sourceFile } from "../../lib/source-file.ts";
import { sourcePath } from "../../lib/package-root.ts";

/**
 * Imports the shared modules.
 * @param named Whether a module will be imported. A process that runs one plugin needs few of them.
 */
export async function createSharedModules(
  named: (specifier: string) => boolean = () => true,
): Promise<Record<string, unknown>> {
  const protocols = pathToFileURL(`${sourcePath("protocols")}/`);
  const index = sourceFile("index.ts");
  // A folder without an index contains code that protocols share. Plugins cannot import it.
  const names = readdirSync(protocols, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .filter((name) => existsSync(new URL(`${name}/${index}`, protocols)));
  const all: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["tollgate/plugin", () => import("../../plugin/index.ts")],
    ["tollgate/store", () => import("../../store/index.ts")],
    ...names.map(
      (name) =>
        [
          `tollgate/protocols/${name}`,
          () => import(new URL(`${name}/${index}`, protocols).href) as Promise<unknown>,
        ] as const,
    ),
  ];
  const lent = all.filter(([specifier]) => named(specifier));
  return Object.fromEntries(
    await Promise.all(lent.map(async ([specifier, load]) => [specifier, await load()] as const)),
  );
}

/**
 * Imports the plugin test kit. A gateway never loads it, so it is not part of the program's bundle.
 */
export const importTestingKit = (): Promise<typeof import("../../testing/index.ts")> => {
  const suffix = import.meta.filename.slice(-3);
  return import(pathToFileURL(sourcePath(`testing/index${suffix}`)).href);
};
