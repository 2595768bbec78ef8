// Budget leases are left out unless the config asks for them: no module of the store imports their folder, except when it is needed.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, it } from "vitest";
import { importsOf } from "../../../../layers.ts";

const STORE = join(import.meta.dirname, "../../../../../plugins/stores/postgres");

/** Files that are loaded with a file, and the files that one of them may load later. */
function loadedWith(entry: string) {
  const loaded = new Set([entry]);
  const later = new Set<string>();
  for (const file of loaded)
    for (const { from, typeOnly, isDynamic } of importsOf(readFileSync(file, "utf8"))) {
      if (!from.startsWith(".") || typeOnly) continue;
      const target = normalize(join(dirname(file), from));
      if (existsSync(target)) (isDynamic ? later : loaded).add(target);
    }
  return { loaded: [...loaded], later: [...later] };
}

it("the store loads no file of the leases by itself, and every other file", () => {
  const { loaded, later } = loadedWith(join(STORE, "index.ts"));
  expect(loaded.length).toBeGreaterThan(50);
  expect(loaded.filter((file) => file.startsWith(join(STORE, "leases")))).toEqual([]);
  expect(later).toEqual([join(STORE, "leases/index.ts")]);
});
