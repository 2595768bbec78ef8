import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { nearest } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT, type CliInput } from "./command.ts";
import { builtins } from "./loading.ts";
import { bringsOf, kindOf, LIKES, misnamed, packageOf, SORTS, type Sort } from "./new/names.ts";
import { filesOf, sourcesOf, type NewPackage } from "./new/package.ts";
import { say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: `new <kind> <name> [options]`,
  about:
    `Begins a plugin: a package that works, with tests, recordings, a page and a workflow for CI. A kind is one of ${SORTS.join(", ")}. ` +
    "It asks nothing and overwrites nothing.",
  options: {
    like: {
      value: "template",
      about: "of a provider openai, anthropic or native; of a middleware guard, cache or route",
    },
    dir: { value: "folder", about: "where it is made; ./tollgate-<kind>-<name> by default" },
    bare: { about: "its sources alone, to lie beside a gateway.yaml; here, or in --dir" },
  },
  words: { least: 2, most: 2 },
  examples: [
    "tollgate new provider acme",
    "tollgate new provider acme --like native",
    "tollgate new middleware words --like guard --dir plugins/words",
    "tollgate new row acme --bare",
  ],
  async run(given) {
    const of = meant(given);
    const bare = given.has("bare");
    const files = bare ? sourcesOf(of) : filesOf(of);
    const folder = resolve(given.text("dir") ?? (bare ? "." : packageOf(of.sort, of.name)));
    write(folder, files, bare);
    const next = bare ? besideConfig(of, folder) : inPackage(folder);
    if (given.json) sayJson({ folder, files: [...files.keys()], next });
    else say([`${shown(folder)} is begun: ${files.size} files.`, "", ...next].join("\n"));
    return EXIT.fine;
  },
};

function meant(given: CliInput): NewPackage {
  const [said = "", name = ""] = given.words;
  const sort = SORTS.find((one) => one === said) ?? unknown(said);
  const why = misnamed(name);
  if (why !== undefined) fail("invalid", `"${name}" is no name: ${why}.`, { code: "usage" });
  for (const kind of bringsOf(sort))
    if (Object.hasOwn(builtins[kind], name))
      fail(
        "conflict",
        `Tollgate has a ${kind} "${name}" of its own, which \`use: ${name}\` means.`,
        { code: "usage" },
      );
  const likes = LIKES[sort];
  const like = given.text("like") ?? likes?.[0];
  if (like !== undefined && !likes?.includes(like))
    fail(
      "invalid",
      likes
        ? `A ${sort} is begun like ${likes.join(", ")}; not like "${like}".`
        : `There is one way to begin a ${sort}: without --like.`,
      { code: "usage" },
    );
  return { sort, like, name };
}

function unknown(said: string): Sort {
  const near = nearest(said, SORTS);
  const hint = near === undefined ? "" : ` Did you mean "${near}"?`;
  return fail("invalid", `There is no kind "${said}".${hint} There are: ${SORTS.join(", ")}.`, {
    code: "usage",
  });
}

/** Nothing is written where anything would be in its place. */
function write(folder: string, files: ReadonlyMap<string, string>, beside: boolean): void {
  if (!beside && existsSync(folder) && readdirSync(folder).length > 0)
    fail("conflict", `${shown(folder)} is not empty. Nothing is written.`, { code: "not_empty" });
  const there = [...files.keys()].find((path) => existsSync(join(folder, path)));
  if (there !== undefined)
    fail("conflict", `${shown(join(folder, there))} is there already. Nothing is written.`, {
      code: "not_empty",
    });
  for (const [path, text] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
  }
}

const shown = (path: string): string => {
  const near = relative(process.cwd(), path);
  return near === "" ? "." : near.startsWith("..") ? path : near;
};

const inPackage = (folder: string): string[] => [
  `  cd ${shown(folder)} && npm install`,
  "  npm test && npx tollgate check-plugin .",
  "  npx tollgate serve",
];

function besideConfig({ sort, name }: NewPackage, folder: string): string[] {
  const path = `./${relative(process.cwd(), join(folder, `${name}.ts`))}`;
  const kind = kindOf(sort);
  return kind === "provider"
    ? [`  In gateway.yaml:  providers: { ${name}: { use: ${path} } }`, "  npx tollgate check"]
    : [`  In gateway.yaml:  use: ${path}`, "  npx tollgate check"];
}
