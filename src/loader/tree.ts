// All that a package is when it is imported: its own files, and those of every package that it depends on. Read, not run. One byte
// that differs gives another hash.
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";

/** More than these are no plugin: they are refused, not skipped. */
const MOST_FILES = 20_000;
const MOST_BYTES = 512 * 1024 * 1024;

export interface PackageTree {
  readonly name: string;
  readonly version: string;
  /** Of all of it. */
  readonly hash: string;
  /** "left-pad@1.3.0" → of its own files. The package itself is among them. */
  readonly packages: ReadonlyMap<string, string>;
  readonly bytes: number;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** `root`: the folder that its package.json is in. Throws where it is too large, or cannot be read. */
export function treeOf(root: string): PackageTree {
  const first = realpathSync(root);
  const found = new Map<string, { id: string; hash: string }>();
  const spent = { files: 0, bytes: 0 };
  const waiting = [first];
  for (const folder of waiting) {
    if (found.has(folder)) continue;
    const manifest = manifestIn(folder);
    const id = `${manifest.name ?? folder}@${manifest.version ?? "0"}`;
    found.set(folder, { id, hash: hashOf(folder, spent) });
    const needed = { ...manifest.optionalDependencies, ...manifest.dependencies };
    for (const name of Object.keys(needed).sort()) {
      const at = besideOrAbove(folder, name);
      if (at !== undefined) waiting.push(at);
      // What is not there now would be another package when it is.
      else found.set(`${folder}\0${name}`, { id: `${name} of ${id}`, hash: "missing" });
    }
  }
  const packages = new Map(
    [...found.values()]
      .map(({ id, hash }) => [id, hash] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  const { name = "", version = "" } = manifestIn(first);
  return { name, version, hash: digest([...packages].join("\n")), packages, bytes: spent.bytes };
}

/** The folders of a package, and of all that it depends on. */
export function packagesOf(root: string): readonly string[] {
  const found = new Set([realpathSync(root)]);
  for (const folder of found) {
    const { optionalDependencies, dependencies } = manifestIn(folder);
    for (const name of Object.keys({ ...optionalDependencies, ...dependencies })) {
      const at = besideOrAbove(folder, name);
      if (at !== undefined) found.add(at);
    }
  }
  return [...found];
}

const manifestIn = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;

/** As Node looks for it. */
function besideOrAbove(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const place = realpathSync(join(at, "node_modules", name));
      if (lstatSync(join(place, "package.json")).isFile()) return place;
    } catch {
      // Not here.
    }
    if (dirname(at) === at) return undefined;
  }
}

/** Every file below, what is installed within it too. */
function hashOf(folder: string, spent: { files: number; bytes: number }): string {
  const lines: string[] = [];
  const look = (below: string) => {
    for (const { name } of readdirSync(join(folder, below), { withFileTypes: true })) {
      const path = below === "" ? name : `${below}${sep}${name}`;
      const file = join(folder, path);
      const facts = lstatSync(file);
      if (facts.isDirectory()) {
        // What npm notes for itself is not imported, and differs from one install to the next.
        if (name !== ".bin" && name !== ".cache") look(path);
        continue;
      }
      if (name === ".package-lock.json") continue;
      spent.files++;
      spent.bytes += facts.size;
      if (spent.files > MOST_FILES || spent.bytes > MOST_BYTES)
        throw new Error(`${folder} and what it depends on are more than can be looked through.`);
      const content = facts.isSymbolicLink() ? `-> ${readlinkSync(file)}` : readFileSync(file);
      lines.push(`${path.split(sep).join("/")}\0${digest(content)}`);
    }
  };
  look("");
  return digest(lines.sort().join("\n"));
}

const digest = (content: string | Buffer): string =>
  `sha256-${createHash("sha256").update(content).digest("base64")}`;
