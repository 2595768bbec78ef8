import { existsSync, mkdirSync, readdirSync, writeFileSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { didYouMean } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, type CliInput } from "../../support/command.ts";
import { builtinPlugins } from "../../support/load-config.ts";
import { print, printJson } from "../../format/terminal.ts";
import { findPackageRoot } from "../../../lib/package-root.ts";
import type { PluginKind } from "../../../plugin/define.ts";

// Creates the files of a new plugin: the files of its template, the files that all templates share,
// and a package.json with its build and test scripts.

interface NewPackage {
  readonly kind: TemplateKind;
  readonly variant: string | undefined;
  readonly name: string;
}

/** Texts by path. */
type NewFiles = ReadonlyMap<string, string>;

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
function sourceFiles(of: NewPackage): NewFiles {
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
 * Fails early on an old version of Node.js, because the compiler, the test runner, and the kit
 * would fail with unclear errors.
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
    // The compiler and the test runner are pinned to the versions with which this version of
    // Tollgate is tested, because a newer version may be published only in part.
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

// Names of a new plugin: its name in code and file names, its title on pages, and upper case in
// variables.

/**
 * Kinds of plugins that can be created. A row is a provider that consists of data. A protocol comes
 * with a frontend and a provider that use it.
 */
export const TEMPLATE_KINDS = [
  "provider",
  "row",
  "protocol",
  "frontend",
  "middleware",
  "observer",
  "store",
] as const;
type TemplateKind = (typeof TEMPLATE_KINDS)[number];

/** Templates of each kind. The first template is the default. */
export const TEMPLATE_VARIANTS: { readonly [sort in TemplateKind]?: readonly string[] } = {
  provider: ["openai", "anthropic", "native"],
  middleware: ["guard", "cache", "route"],
};

/** Returns the kind by which a package of that template kind is named. */
const pluginKindOf = (sort: TemplateKind): PluginKind | "protocol" =>
  sort === "row" ? "provider" : sort;

/** Returns the kinds of plugins in the package. */
const pluginsOf = (sort: TemplateKind): readonly PluginKind[] => {
  const kind = pluginKindOf(sort);
  return kind === "protocol" ? ["provider", "frontend"] : [kind];
};

const packageName = (sort: TemplateKind, name: string): string =>
  `tollgate-${pluginKindOf(sort)}-${name}`;

/** Returns the template's folder under `templates`. */
export const templateFolder = (sort: TemplateKind, like: string | undefined): string =>
  like === undefined ? sort : `${sort}-${like}`;

/** Words that YAML does not parse as text, so that `use:` cannot contain them. */
const YAML_WORDS = ["true", "false", "null"];
const MAX_NAME_LENGTH = 64;

/** Returns why a name is invalid, or undefined if it is valid. */
function nameProblem(name: string): string | undefined {
  if (!NAME.test(name)) return "it must contain only lowercase letters, digits, and single dashes";
  if (name.length > MAX_NAME_LENGTH) return `it must have at most ${MAX_NAME_LENGTH} letters`;
  return YAML_WORDS.includes(name) ? "it is a reserved word of YAML" : undefined;
}

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** Quotes a name with a dash where code uses it as an object key. */
const quoteKeys = (code: string, name: string): string =>
  name.includes("-") ? code.replace(/(?<=[{,\s])acme(?=: )/g, '"acme"') : code;

/** Replaces the name of the template plugins, "Acme". */
function renameInSource(file: string, source: string, name: string): string {
  const text = file.endsWith(".ts") ? quoteKeys(source, name) : source;
  const title = name
    .split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
  return text
    .replaceAll("ACME", name.toUpperCase().replaceAll("-", "_"))
    .replaceAll("Acme", title)
    .replaceAll("acme", name);
}

export const command: CliCommand = {
  usage: `new <kind> <name> [options]`,
  description: `Creates a plugin package with tests, recordings, a docs page, and a CI workflow. The kind is one of ${TEMPLATE_KINDS.join(", ")}. It asks no questions and overwrites no files.`,
  options: {
    template: {
      placeholder: "name",
      description:
        "Template: openai, anthropic, or native for a provider; guard, cache, or route " +
        "for a middleware",
    },
    dir: {
      placeholder: "directory",
      description: "Directory of the plugin (default: ./tollgate-<kind>-<name>)",
    },
    bare: {
      description: "Create only the sources, for use next to a gateway.yaml, here or in --dir",
    },
  },
  positionals: { least: 2, most: 2 },
  examples: [
    "tollgate new provider acme",
    "tollgate new provider acme --template native",
    "tollgate new middleware words --template guard --dir plugins/words",
    "tollgate new row acme --bare",
  ],
  async run(given) {
    const of = parseNewPackage(given);
    const bare = given.has("bare");
    const files = bare ? sourceFiles(of) : packageFiles(of);
    const folder = resolve(given.getText("dir") ?? (bare ? "." : packageName(of.kind, of.name)));
    write(folder, files, bare);
    const next = bare ? configNextSteps(of, folder) : packageNextSteps(folder);
    if (given.json) printJson({ folder, files: [...files.keys()], next });
    else
      print([`Created ${displayPath(folder)} with ${files.size} files.`, "", ...next].join("\n"));
    return EXIT_CODES.ok;
  },
};

function parseNewPackage(given: CliInput): NewPackage {
  const [kindName = "", name = ""] = given.positionals;
  const sort = TEMPLATE_KINDS.find((one) => one === kindName) ?? failUnknownKind(kindName);
  const why = nameProblem(name);
  if (why !== undefined) fail("invalid", `Invalid name "${name}": ${why}.`, { code: "usage" });
  for (const kind of pluginsOf(sort))
    if (Object.hasOwn(builtinPlugins[kind], name))
      fail(
        "conflict",
        `The name "${name}" is not allowed: \`use: ${name}\` refers to Tollgate's built-in ${kind}.`,
        { code: "usage" },
      );
  const templates = TEMPLATE_VARIANTS[sort];
  const template = given.getText("template") ?? templates?.[0];
  if (template !== undefined && !templates?.includes(template))
    fail(
      "invalid",
      templates
        ? `Unknown template "${template}". The templates of a ${sort} are ${templates.join(", ")}.`
        : `A ${sort} has only one template. Omit --template.`,
      { code: "usage" },
    );
  return { kind: sort, variant: template, name };
}

function failUnknownKind(kindName: string): TemplateKind {
  return fail(
    "invalid",
    `Unknown plugin kind "${kindName}".${didYouMean(kindName, TEMPLATE_KINDS)} It must be one of ${TEMPLATE_KINDS.join(", ")}.`,
    {
      code: "usage",
    },
  );
}

/** Writes the files. If any of the files exists, fails before writing the first file. */
function write(folder: string, files: ReadonlyMap<string, string>, beside: boolean): void {
  if (!beside && existsSync(folder) && readdirSync(folder).length > 0)
    fail("conflict", `${displayPath(folder)} is not empty. Nothing was written.`, {
      code: "not_empty",
    });
  const there = [...files.keys()].find((path) => existsSync(join(folder, path)));
  if (there !== undefined)
    fail("conflict", `${displayPath(join(folder, there))} already exists. Nothing was written.`, {
      code: "not_empty",
    });
  for (const [path, text] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
  }
}

const displayPath = (path: string): string => {
  const near = relative(process.cwd(), path);
  return near === "" ? "." : near.startsWith("..") ? path : near;
};

const packageNextSteps = (folder: string): string[] => [
  `  cd ${displayPath(folder)} && npm install`,
  "  npm test && npx tollgate check-plugin .",
  "  npx tollgate serve",
];

function configNextSteps({ kind: sort, name }: NewPackage, folder: string): string[] {
  const path = `../../${relative(process.cwd(), join(folder, `${name}.ts`))}`;
  const kind = pluginKindOf(sort);
  return kind === "provider"
    ? [`  In gateway.yaml:  providers: { ${name}: { use: ${path} } }`, "  npx tollgate check"]
    : [`  In gateway.yaml:  use: ${path}`, "  npx tollgate check"];
}
