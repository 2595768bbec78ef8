import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { didYouMean } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, type CliInput } from "../../support/command.ts";
import { builtinPlugins } from "../../support/load-config.ts";
import {
  pluginsOf,
  pluginKindOf,
  TEMPLATE_VARIANTS,
  nameProblem,
  packageName,
  TEMPLATE_KINDS,
  type TemplateKind,
} from "../../new/plugin-names.ts";
import { packageFiles, sourceFiles, type NewPackage } from "../../new/plugin-package.ts";
import { print, printJson } from "../../format/terminal.ts";

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
  const [said = "", name = ""] = given.positionals;
  const sort = TEMPLATE_KINDS.find((one) => one === said) ?? failUnknownKind(said);
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

function failUnknownKind(said: string): TemplateKind {
  return fail(
    "invalid",
    `Unknown plugin kind "${said}".${didYouMean(said, TEMPLATE_KINDS)} It must be one of ${TEMPLATE_KINDS.join(", ")}.`,
    {
      code: "usage",
    },
  );
}

/** Writes the files. Fails before the first one if any of them exists. */
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
