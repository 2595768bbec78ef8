// Creates the files of a new plugin: those of its template, those that all templates share, and a
// package.json with its build and test scripts.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { findPackageRoot } from "../../config/source/default-config.ts";
import {
  packageName,
  renameInSource,
  templateFolder,
  pluginKindOf,
  type TemplateKind,
} from "./plugin-names.ts";

export interface NewPackage {
  readonly kind: TemplateKind;
  readonly variant: string | undefined;
  readonly name: string;
}

/** Texts by path. */
export type NewFiles = ReadonlyMap<string, string>;

/** Name in the template of the file that npm would not pack as `.gitignore`. */
const UNPACKED_DOTFILE = "gitignore";

export function packageFiles(of: NewPackage): NewFiles {
  const templates = join(findPackageRoot(), "templates");
  const own = join(templates, templateFolder(of.kind, of.variant));
  const files = new Map<string, string>();
  for (const folder of [join(templates, "common"), own])
    for (const path of listFiles(folder)) {
      const text = readFileSync(join(folder, path), "utf8");
      files.set(
        path === UNPACKED_DOTFILE ? `.${UNPACKED_DOTFILE}` : path,
        renameInSource(path, text, of.name),
      );
    }
  const special = JSON.parse(files.get("package.json") ?? "{}") as ManifestParts;
  files.set("package.json", `${JSON.stringify(buildManifest(of, special), undefined, 2)}\n`);
  return files;
}

/** Returns only the sources, for a folder next to gateway.yaml. */
export function sourceFiles(of: NewPackage): NewFiles {
  const sources = [...packageFiles(of)].flatMap(([path, text]): [string, string][] => {
    const file = /^src\/(.+)$/.exec(path)?.[1];
    return file === undefined ? [] : [[file === "index.ts" ? `${of.name}.ts` : file, text]];
  });
  // Imports of the entry file are changed to its new name.
  return new Map(
    sources.map(([file, text]) => [file, text.replaceAll('"./index.ts"', `"./${of.name}.ts"`)]),
  );
}

const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort();

interface ManifestParts {
  readonly name: string;
  readonly description: string;
  readonly exports?: object;
  readonly tollgate: object;
}

/** Reads Tollgate's own package.json, for the versions of its dependencies. */
const ownManifest = (): { version: string; devDependencies?: Readonly<Record<string, string>> } =>
  JSON.parse(readFileSync(join(findPackageRoot(), "package.json"), "utf8"));

const NODE = 24;

/**
 * Fails early on an old version of Node.js, on which the compiler, the test runner, and the kit
 * fail with unclear errors.
 */
const CHECK_NODE = `node -e "if(parseInt(process.versions.node)<${NODE}){console.error('This package needs Node ${NODE} or newer to build and test. This is Node '+process.versions.node+'.');process.exit(1)}"`;

function buildManifest({ kind: sort, name }: NewPackage, special: ManifestParts): object {
  const { version, devDependencies = {} } = ownManifest();
  const [major = "0", minor = "0"] = version.split(".");
  const kind = pluginKindOf(sort);
  return {
    name: packageName(sort, name),
    version: "0.1.0",
    description: special.description,
    keywords: ["tollgate", "tollgate-plugin", `tollgate-${kind}`],
    license: "MIT",
    type: "module",
    exports: special.exports ?? {
      ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
    },
    files: ["dist", "CHANGELOG.md"],
    engines: { node: `>=${NODE}` },
    scripts: {
      prebuild: CHECK_NODE,
      build: "tsc -p tsconfig.build.json",
      pretest: CHECK_NODE,
      test: "tsc -p . && npm run build && vitest run",
      prepack: "npm run build",
    },
    peerDependencies: { tollgate: `>=${major}.${minor} <2` },
    // The compiler and the test runner are pinned to the versions that this version of Tollgate is
    // tested with, because a newer version may be published only in part.
    devDependencies: {
      "@types/node": devDependencies["@types/node"] ?? "^24",
      tollgate: `^${version}`,
      typescript: devDependencies["typescript"] ?? "^7",
      vitest: devDependencies["vitest"] ?? "^5",
    },
    publishConfig: { access: "public", provenance: true },
    tollgate: special.tollgate,
  };
}
