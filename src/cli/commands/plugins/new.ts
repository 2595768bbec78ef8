import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { nearest } from "../../../lib/text.ts";
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
  description:
    `Begins a plugin: a package that works, with tests, recordings, a page and a workflow for CI. A kind is one of ${TEMPLATE_KINDS.join(", ")}. ` +
    "It asks nothing and overwrites nothing.",
  options: {
    template: {
      placeholder: "name",
      description:
        "of a provider openai, anthropic or native; of a middleware guard, cache or route",
    },
    dir: {
      placeholder: "directory",
      description: "where it is made; ./tollgate-<kind>-<name> by default",
    },
    bare: { description: "its sources alone, to lie beside a gateway.yaml; here, or in --dir" },
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
    else print([`${displayPath(folder)} is begun: ${files.size} files.`, "", ...next].join("\n"));
    return EXIT_CODES.ok;
  },
};

function parseNewPackage(given: CliInput): NewPackage {
  const [said = "", name = ""] = given.positionals;
  const sort = TEMPLATE_KINDS.find((one) => one === said) ?? failUnknownKind(said);
  const why = nameProblem(name);
  if (why !== undefined) fail("invalid", `"${name}" is no name: ${why}.`, { code: "usage" });
  for (const kind of pluginsOf(sort))
    if (Object.hasOwn(builtinPlugins[kind], name))
      fail(
        "conflict",
        `Tollgate has a ${kind} "${name}" of its own, which \`use: ${name}\` means.`,
        { code: "usage" },
      );
  const templates = TEMPLATE_VARIANTS[sort];
  const template = given.getText("template") ?? templates?.[0];
  if (template !== undefined && !templates?.includes(template))
    fail(
      "invalid",
      templates
        ? `A ${sort} has the templates ${templates.join(", ")}; not "${template}".`
        : `A ${sort} has one template: leave out --template.`,
      { code: "usage" },
    );
  return { kind: sort, variant: template, name };
}

function failUnknownKind(said: string): TemplateKind {
  const near = nearest(said, TEMPLATE_KINDS);
  const hint = near === undefined ? "" : ` Did you mean "${near}"?`;
  return fail(
    "invalid",
    `There is no kind "${said}".${hint} There are: ${TEMPLATE_KINDS.join(", ")}.`,
    {
      code: "usage",
    },
  );
}

/** Writes the files. Fails before the first one if any of them exists. */
function write(folder: string, files: ReadonlyMap<string, string>, beside: boolean): void {
  if (!beside && existsSync(folder) && readdirSync(folder).length > 0)
    fail("conflict", `${displayPath(folder)} is not empty. Nothing is written.`, {
      code: "not_empty",
    });
  const there = [...files.keys()].find((path) => existsSync(join(folder, path)));
  if (there !== undefined)
    fail("conflict", `${displayPath(join(folder, there))} is there already. Nothing is written.`, {
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
