// Hashes all files that can be loaded when a package is imported: its own files, the targets of its
// symbolic links, and all its dependencies and peer dependencies. The files are read and not run.
// One changed byte changes the hash. A file that is not in `files` cannot be loaded:
// `locked-modules.ts` rejects it.
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";

/** Maximum number of files and bytes. A larger package is rejected, not hashed partially. */
const MAX_FILES = 20_000;
const MAX_BYTES = 512 * 1024 * 1024;

export interface PackageTree {
  readonly name: string;
  readonly version: string;
  /** Hash of the whole tree. */
  readonly hash: string;
  /**
   * Hash of each package's own files, by id such as "left-pad@1.3.0". Includes the package itself.
   */
  readonly packages: ReadonlyMap<string, string>;
  /** Hash of each file that may be loaded, by real path. */
  readonly files: ReadonlyMap<string, string>;
  /** Directories of the packages, and other directories to which their symbolic links lead. */
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

/** Intermediate results of a traversal over several packages. */
interface WalkState {
  readonly files: Map<string, string>;
  readonly folders: Set<string>;
  count: number;
  bytes: number;
}

/**
 * Reads a package. `root`: directory of its package.json. Throws if the package is too large or
 * cannot be read.
 */
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
      // A missing dependency is recorded, because installing it later would change the package.
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

/** Returns the directories of a package and all its dependencies. */
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

/**
 * Includes peer dependencies. `tollgate` is excluded, because the gateway that loads the package is
 * always used, even if another copy is installed next to it.
 */
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

/** Finds an installed package as Node does. */
function findInstalled(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const place = realpathSync(join(at, "node_modules", name));
      if (lstatSync(join(place, "package.json")).isFile()) return place;
    } catch {
      // The package is not installed in this directory.
    }
    if (dirname(at) === at) return undefined;
  }
}

/**
 * Files that npm writes to a `node_modules` directory and that differ between two installs. They
 * are neither hashed nor loaded.
 */
const NPM_METADATA = new Set([".bin", ".cache", ".package-lock.json"]);

/**
 * Hashes all files below a directory, including installed packages and the targets of symbolic
 * links.
 */
function hashFolder(folder: string, walked: WalkState): string {
  const lines: string[] = [];
  const within = (path: string): boolean => path === folder || path.startsWith(folder + sep);
  const add = (at: string, real: string) => {
    const { size } = lstatSync(real);
    walked.count++;
    walked.bytes += size;
    if (walked.count > MAX_FILES || walked.bytes > MAX_BYTES)
      throw new Error(`${folder} and its dependencies are too large to check.`);
    const hash = integrityOf(readFileSync(real));
    walked.files.set(real, hash);
    lines.push(`${at}\0${hash}`);
  };
  /**
   * `at`: path relative to the package's directory. `seen`: parent directories, so that a link to
   * one of them causes no endless recursion.
   */
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
        // A target within the directory is visited anyway, and an installed package is visited
        // where it is declared.
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

/** Returns a hash in the notation of `plugins.lock.yaml`. */
export const integrityOf = (content: string | Buffer): string =>
  `sha256-${createHash("sha256").update(content).digest("base64")}`;
