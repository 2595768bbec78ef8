// Node keeps a module for as long as its process lives, by its address. So a file that has changed since it was first
// imported gets another address: a query that only we add, at the moment of resolving. Files that are as they were keep
// theirs, so that what several plugins share stays one. The cache is the process's, and so is what is known of it.
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { Graph } from "./graph.ts";

/** By address: the version under which a file was first imported. */
const first = new Map<string, string>();
/** By address: what stands behind it now, where that is not the first version. */
const changed = new Map<string, string>();
let hooked = false;

/** From here on, an import of a file in this graph finds it as it is now. */
export function freshen(graph: Graph): void {
  const { cache } = createRequire(import.meta.url);
  for (const file of graph.files) {
    const url = pathToFileURL(file).href;
    const version = graph.version(file);
    const known = first.get(url);
    const before = changed.get(url) ?? known;
    if (known === undefined) first.set(url, version);
    if (before === undefined || before === version) continue;
    // CommonJS, and what jiti has translated, are kept by their path.
    delete cache[file];
    if (version === known) changed.delete(url);
    else changed.set(url, version);
    hook();
  }
}

/** Only once something has changed: most gateways never need it. */
function hook(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const version = context.conditions.includes("require") ? undefined : changed.get(found.url);
      return version === undefined ? found : { ...found, url: `${found.url}?version=${version}` };
    },
  });
}
