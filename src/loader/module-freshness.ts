// Makes Node import changed files again. Node caches modules by URL for the life of the process. A
// file that changed since its first import therefore gets another URL, with a query that is added
// during resolution. Unchanged files keep their URL, so plugins still share their modules. The
// cache belongs to the process, so this state does too.
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { ImportGraph } from "./import-graph.ts";

/** Version under which a file was first imported, by URL. */
const firstVersions = new Map<string, string>();
/** Current version of a file, by URL, if it is not the first version. */
const currentVersions = new Map<string, string>();
let isHookInstalled = false;

/** Makes later imports of files in this graph load their current content. */
export function invalidateModules(graph: ImportGraph): void {
  const { cache } = createRequire(import.meta.url);
  for (const file of graph.files) {
    const url = pathToFileURL(file).href;
    const version = graph.version(file);
    const known = firstVersions.get(url);
    const before = currentVersions.get(url) ?? known;
    if (known === undefined) firstVersions.set(url, version);
    if (before === undefined || before === version) continue;
    // CommonJS modules and modules that jiti transformed are cached by path.
    delete cache[file];
    if (version === known) currentVersions.delete(url);
    else currentVersions.set(url, version);
    installHook();
  }
}

/** Installed only after a first change, because most gateways never need it. */
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
