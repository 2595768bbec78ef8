// Writes all commands with their options into docs/operators.md, from the output of `--help`.
//
//     npx node --conditions=tollgate-source .build/commands.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CliCommand,
  COMMON_OPTIONS,
  CONFIG_OPTIONS,
  type Option,
} from "../src/cli/support/command.ts";
import { COMMANDS } from "../src/cli/main.ts";

export const PAGE = join(import.meta.dirname, "../docs/operators.md");
const HEAD = "## Every command\n";
const NEXT = "\n## ";

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

const row = ([name, { short, placeholder, description, isRepeatable }]: [string, Option]): string =>
  `| \`${short ? `-${short}, ` : ""}--${name}${placeholder ? ` <${cell(placeholder)}>` : ""}\` | ${cell(description)}${isRepeatable ? " (may be repeated)" : ""} |`;

function section({ usage, description, options }: CliCommand): string {
  const own = Object.entries(options).filter(([name]) => !(name in CONFIG_OPTIONS));
  const rows = own.length === 0 ? [] : ["", "| option | |", "|---|---|", ...own.map(row)];
  return [
    `**\`tollgate ${usage.replace(/ \[options\]$/, "")}\`** ${description.replaceAll("\n", " ")}`,
    ...rows,
  ].join("\n");
}

async function commands(): Promise<readonly CliCommand[]> {
  const all = await Promise.all(Object.values(COMMANDS).map(({ load }) => load()));
  return all.flatMap(({ command }) =>
    command.subcommands ? Object.values(command.subcommands) : [command],
  );
}

export async function everyCommand(): Promise<string> {
  const sections = (await commands()).map(section);
  const common = Object.entries({ ...COMMON_OPTIONS, ...CONFIG_OPTIONS }).map(row);
  return [
    HEAD,
    "All of them take these; `-c` where they read a gateway.yaml or talk to a gateway. They end with 0 when all is well, with 1 when it is not, and with 78",
    "when gateway.yaml has errors.",
    "",
    "| option | |",
    "|---|---|",
    ...common,
    "",
    sections.join("\n\n"),
    "",
  ].join("\n");
}

/** Returns the page with the section replaced. */
export async function written(page: string): Promise<string> {
  const from = page.indexOf(HEAD);
  if (from < 0) throw new Error("docs/operators.md has no section of commands");
  const end = page.indexOf(NEXT, from + HEAD.length);
  return page.slice(0, from) + (await everyCommand()) + page.slice(end);
}

if (import.meta.main) writeFileSync(PAGE, await written(readFileSync(PAGE, "utf8")));
