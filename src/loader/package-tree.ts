// Everything that may be loaded when a package is imported: its own files, those behind its symbolic links, and those of every package that
// it declares as a dependency or a peer. Read, not run. One byte that differs gives another hash. A file that is not in `files` is not
// loaded: `locked.ts` refuses it.
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";

/** More than these are no plugin: they are refused, not skipped. */
const MAX_FILES = 20_000;
const MAX_BYTES = 512 * 1024 * 1024;

export interface PackageTree {
  readonly name: string;
  readonly version: string;
  /** Of all of it. */
  readonly hash: string;
  /** "left-pad@1.3.0" → of its own files. The package itself is among them. */
  readonly packages: ReadonlyMap<string, string>;
  /** By real path: the hash of each file that may be loaded. */
  readonly files: ReadonlyMap<string, string>;
  /** The packages' folders, and those outside of them that their symbolic links lead to. */
  readonly folders: readonly string[];
  readonly bytes: number;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** What a walk over several packages has met so far. */
interface WalkState {
  readonly files: Map<string, string>;
  readonly folders: Set<string>;
  count: number;
  bytes: number;
}

/** `root`: the folder that its package.json is in. Throws where it is too large, or cannot be read. */
export function readPackageTree(root: string): PackageTree {
  const first = realpathSync(root);
  const found = new Map<string, { id: string; hash: string }>();
  const walked: WalkState = { files: new Map(), folders: new Set(), count: 0, bytes: 0 };
  const waiting = [first];
  for (const folder of waiting) {
    if (found.has(folder)) continue;
    const manifest = readManifestIn(folder);
    const id = `${manifest.name ?? folder}@${manifest.version ?? "0"}`;
    found.set(folder, { id, hash: hashFolder(folder, walked) });
    for (const name of dependenciesOf(manifest)) {
      const at = findInstalled(folder, name);
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
  const { name = "", version = "" } = readManifestIn(first);
  const hash = integrityOf([...packages].join("\n"));
  const { files, folders, bytes } = walked;
  return { name, version, hash, packages, files, folders: [...folders], bytes };
}

/** The folders of a package, and of all that it depends on. */
export function packageFoldersOf(root: string): readonly string[] {
  const found = new Set([realpathSync(root)]);
  for (const folder of found) {
    for (const name of dependenciesOf(readManifestIn(folder))) {
      const at = findInstalled(folder, name);
      if (at !== undefined) found.add(at);
    }
  }
  return [...found];
}

/** Peers too. `tollgate` is the gateway that loads the package, whichever copy is installed beside it. */
const dependenciesOf = ({
  dependencies,
  optionalDependencies,
  peerDependencies,
}: Manifest): string[] =>
  Object.keys({ ...peerDependencies, ...optionalDependencies, ...dependencies })
    .filter((name) => name !== "tollgate")
    .sort();

const readManifestIn = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;

/** As Node looks for it. */
function findInstalled(folder: string, name: string): string | undefined {
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

/** Of npm's own notes in a node_modules folder, which differ between two installs. They are not hashed, and not loaded. */
const NPM_METADATA = new Set([".bin", ".cache", ".package-lock.json"]);

/** Of every file below, installed packages and what symbolic links lead to included. */
function hashFolder(folder: string, walked: WalkState): string {
  const lines: string[] = [];
  const within = (path: string): boolean => path === folder || path.startsWith(folder + sep);
  const add = (at: string, real: string) => {
    const { size } = lstatSync(real);
    walked.count++;
    walked.bytes += size;
    if (walked.count > MAX_FILES || walked.bytes > MAX_BYTES)
      throw new Error(`${folder} and what it depends on are more than can be looked through.`);
    const hash = integrityOf(readFileSync(real));
    walked.files.set(real, hash);
    lines.push(`${at}\0${hash}`);
  };
  /** `at`: where it is, from the package's folder. `seen`: folders above it, so that a link that leads up ends. */
  const look = (dir: string, at: string, seen: readonly string[]) => {
    const holder = basename(dir).startsWith("@") ? dirname(dir) : dir;
    const installed = basename(holder) === "node_modules";
    for (const { name } of readdirSync(dir, { withFileTypes: true })) {
      const file = join(dir, name);
      const path = at === "" ? name : `${at}/${name}`;
      if (basename(dir) === "node_modules" && NPM_METADATA.has(name)) continue;
      const facts = lstatSync(file);
      if (facts.isDirectory()) look(file, path, seen);
      else if (facts.isFile()) add(path, file);
      else if (facts.isSymbolicLink()) {
        lines.push(`${path}\0${integrityOf(`-> ${readlinkSync(file)}`)}`);
        const real = realPathOf(file);
        // What is within the folder is met there; a package is met where it is declared.
        if (real === undefined || within(real) || installed || seen.includes(real)) continue;
        if (lstatSync(real).isDirectory()) {
          walked.folders.add(real);
          look(real, path, [...seen, real]);
        } else if (lstatSync(real).isFile()) add(path, real);
      }
    }
  };
  walked.folders.add(folder);
  look(folder, "", [folder]);
  return integrityOf(lines.sort().join("\n"));
}

function realPathOf(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

/** As it is written in plugins.lock.yaml. */
export const integrityOf = (content: string | Buffer): string =>
  `sha256-${createHash("sha256").update(content).digest("base64")}`;
