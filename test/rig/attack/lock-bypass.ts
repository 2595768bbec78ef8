// Runs in a process of its own, for the attack rig and for test/unit/loader/locked.test.ts. It
// generates packages on disk, locks them, lets them load other files, and changes loaded files.
// Prints one JSON line with the violations.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { importLocked, lockModules } from "../../../src/loader/locked-modules.ts";
import { readPackageTree } from "../../../src/loader/package-tree.ts";

/** Folders of a file from the installation's root. `links`: symbolic links to them. */
const PLACES: Readonly<
  Record<string, { at: string; links?: Readonly<Record<string, string>>; covered: boolean }>
> = {
  "own file": { at: "node_modules/p/lib", covered: true },
  ".cache": { at: "node_modules/p/.cache", covered: true },
  ".bin": { at: "node_modules/p/deep/.bin", covered: true },
  "npm's cache": { at: "node_modules/p/node_modules/.cache", covered: false },
  "npm's bin": { at: "node_modules/p/node_modules/.bin", covered: false },
  "npm's cache beside it": { at: "node_modules/.cache", covered: false },
  "behind a link within": {
    at: "node_modules/p/lib",
    links: { "node_modules/p/link": "lib" },
    covered: true,
  },
  "behind a link that leads out": {
    at: "elsewhere",
    links: { "node_modules/p/out": "../../elsewhere" },
    covered: true,
  },
  "behind a link in a linked folder": {
    at: "further",
    links: { "node_modules/p/far": "../../between", "between/on": "../further" },
    covered: true,
  },
  "a dependency": { at: "node_modules/dependency", covered: true },
  "an optional dependency": { at: "node_modules/optional", covered: true },
  "a peer": { at: "node_modules/peer", covered: true },
  "a peer's .cache": { at: "node_modules/peer/.cache", covered: true },
  "a dependency's dependency": { at: "node_modules/deep", covered: true },
  "an undeclared package": { at: "node_modules/stray", covered: false },
  "an undeclared package within": { at: "node_modules/p/node_modules/inner", covered: true },
  "a file of the operator's": { at: ".", covered: false },
  "the folder above": { at: "node_modules", covered: false },
};
const LINKED: Readonly<Record<string, string>> = {
  "behind a link within": "node_modules/p/link",
  "behind a link that leads out": "node_modules/p/out",
  "behind a link in a linked folder": "node_modules/p/far/on",
};
const WAYS = ["import", "require", "as cwd", "as its neighbour", "Module._load"] as const;

interface Loading {
  readonly place: string;
  readonly form: "mjs" | "cjs" | "json";
  readonly way: (typeof WAYS)[number];
}
const loading: fc.Arbitrary<Loading> = fc.record({
  place: fc.constantFrom(...Object.keys(PLACES)),
  form: fc.constantFrom("mjs" as const, "cjs" as const, "json" as const),
  way: fc.constantFrom(...WAYS),
});

const write = (root: string, path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const nameOf = ({ form }: Loading, i: number) => `f${i}.${form}`;
const fileOf = (one: Loading, i: number) => join(PLACES[one.place]!.at, nameOf(one, i));

/** One of the ways, as written in the entry. Its rejection does not stop the others. */
function lineOf(one: Loading, i: number): string {
  const address = `root + "/${join(LINKED[one.place] ?? PLACES[one.place]!.at, nameOf(one, i))}"`;
  const json = one.form === "json" ? ', { with: { type: "json" } }' : "";
  const work = {
    import: `await import(pathToFileURL(${address}).href${json})`,
    require: `createRequire(import.meta.url)(${address})`,
    "as cwd": `createRequire(process.cwd() + "/x.js")(${address})`,
    "as its neighbour": `createRequire(${address} + ".js")(${address})`,
    "Module._load": `module._load(${address})`,
  }[one.way];
  return `try { const it = ${work}; seen.push([${i}, it.text ?? it.default?.text]); } catch (error) { refused.push([${i}, error.message]); }`;
}

function build(root: string, all: readonly Loading[]): void {
  const manifest = (path: string, name: string, more: object = {}) =>
    write(root, `${path}/package.json`, JSON.stringify({ name, version: "1.0.0", ...more }));
  manifest("node_modules/p", "p", {
    dependencies: { dependency: "1" },
    optionalDependencies: { optional: "1", missing: "1" },
    peerDependencies: { peer: "1", tollgate: "*" },
  });
  manifest("node_modules/dependency", "dependency", { dependencies: { deep: "1", p: "1" } });
  for (const name of ["optional", "peer", "deep", "stray"]) manifest(`node_modules/${name}`, name);
  manifest("node_modules/p/node_modules/inner", "inner");
  for (const [i, one] of all.entries()) {
    const text = {
      mjs: 'export const text = "0";',
      cjs: 'exports.text = "0";',
      json: '{"text":"0"}',
    };
    write(root, fileOf(one, i), text[one.form]);
    for (const [at, to] of Object.entries(PLACES[one.place]!.links ?? {})) {
      mkdirSync(dirname(join(root, at)), { recursive: true });
      try {
        symlinkSync(to, join(root, at));
      } catch {
        // Another file already has this place.
      }
    }
  }
  write(
    root,
    "node_modules/p/index.mjs",
    [
      'import module, { createRequire } from "node:module";',
      'import { pathToFileURL } from "node:url";',
      `const root = ${JSON.stringify(root)};`,
      "export const seen = [], refused = [];",
      ...all.map(lineOf),
    ].join("\n"),
  );
}

interface Loaded {
  readonly seen: readonly (readonly [number, string])[];
  readonly refused: readonly (readonly [number, string])[];
}

const base = mkdtempSync(join(tmpdir(), "tollgate-locked-"));
const wrong: string[] = [];
const counts = { trees: 0, loaded: 0, refused: 0, changed: 0 };
let n = 0;
process.chdir(base);

async function check(all: readonly Loading[]): Promise<void> {
  const root = join(base, `t${n++}`);
  counts.trees++;
  build(root, all);
  const tree = readPackageTree(join(root, "node_modules/p"));
  lockModules("p", tree.files);
  const { seen, refused } = (await importLocked(join(root, "node_modules/p/index.mjs"))) as Loaded;
  counts.loaded += seen.length;
  counts.refused += refused.length;
  for (const [i] of seen) {
    const path = join(root, fileOf(all[i]!, i));
    if (!tree.files.has(path)) wrong.push(`${JSON.stringify(all[i])} is loaded without a hash`);
  }
  for (const [i, why] of refused) {
    const { place, way, form } = all[i]!;
    // An attempt that Node itself rejects is not the gateway's rejection.
    if (
      PLACES[place]!.covered &&
      !/Cannot (find|use)|not supported|require\(\) of ES/.test(why) &&
      !(way !== "import" && form === "mjs")
    )
      wrong.push(`${JSON.stringify(all[i])} is covered and refused: ${why}`);
    if (!PLACES[place]!.covered && !why.includes("plugins.lock.yaml"))
      wrong.push(`${JSON.stringify(all[i])} fails for another reason: ${why}`);
  }
  // Each loaded file is changed in a copy after it was locked: once before verification, and once
  // after it.
  for (const [i] of seen.slice(0, 2)) {
    const copy = join(base, `t${n++}`);
    build(copy, all);
    const before = readPackageTree(join(copy, "node_modules/p"));
    lockModules("p", before.files);
    const file = join(copy, fileOf(all[i]!, i));
    writeFileSync(file, readFileSync(file, "utf8").replace("0", "1"));
    if (readPackageTree(join(copy, "node_modules/p")).hash === before.hash)
      wrong.push(`${JSON.stringify(all[i])}: one byte more and the same hash`);
    const again = (await importLocked(join(copy, "node_modules/p/index.mjs"))) as Loaded;
    counts.changed++;
    if (again.seen.some(([j, text]) => j === i || text === "1"))
      wrong.push(`${JSON.stringify(all[i])} is loaded although it was changed`);
  }
}

try {
  const [trees, seed] = process.argv.slice(2).map(Number);
  // Every place in every way once, and then random ones.
  const all = Object.keys(PLACES).map((place) =>
    WAYS.flatMap((way) => (["mjs", "cjs", "json"] as const).map((form) => ({ place, form, way }))),
  );
  for (const each of all) await check(each);
  for (const each of fc.sample(fc.array(loading, { minLength: 1, maxLength: 8 }), {
    numRuns: trees!,
    seed: seed!,
  }))
    await check(each);
} finally {
  rmSync(base, { recursive: true, force: true });
}
process.stdout.write(JSON.stringify({ wrong: wrong.slice(0, 20), counts }));
