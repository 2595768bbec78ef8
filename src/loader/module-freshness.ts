// Node keeps a module for as long as its process lives, by its address. So a file that has changed since it was first
// imported gets another address: a query that only we add, at the moment of resolving. Files that are as they were keep
// theirs, so that what several plugins share stays one. The cache is the process's, and so is what is known of it.
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { ImportGraph } from "./import-graph.ts";

/** By address: the version under which a file was first imported. */
const firstVersions = new Map<string, string>();
/** By address: what stands behind it now, where that is not the first version. */
const currentVersions = new Map<string, string>();
let isHookInstalled = false;

/** From here on, an import of a file in this graph finds it as it is now. */
export function invalidateModules(graph: ImportGraph): void {
  const { cache } = createRequire(import.meta.url);
  for (const file of graph.files) {
    const url = pathToFileURL(file).href;
    const version = graph.version(file);
    const known = firstVersions.get(url);
    const before = currentVersions.get(url) ?? known;
    if (known === undefined) firstVersions.set(url, version);
    if (before === undefined || before === version) continue;
    // CommonJS, and what jiti has translated, are kept by their path.
    delete cache[file];
    if (version === known) currentVersions.delete(url);
    else currentVersions.set(url, version);
    installHook();
  }
}

/** Only once something has changed: most gateways never need it. */
function installHook(): void {
  if (isHookInstalled) return;
  isHookInstalled = true;
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const version = context.conditions.includes("require")
        ? undefined
        : currentVersions.get(found.url);
      return version === undefined ? found : { ...found, url: `${found.url}?version=${version}` };
    },
  });
}
