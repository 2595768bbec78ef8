import { writeFile } from "node:fs/promises";
import { resolve, dirname, isAbsolute, join, relative, sep } from "node:path";
import { createInterface } from "node:readline/promises";
import { readDefaultConfig, findPackageRoot } from "../../../lib/package-root.ts";
import { parseDuration } from "../../../lib/time/units.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, type CliInput } from "../../support/command.ts";
import {
  askStarterOptions,
  buildStarterConfig,
  requiredVariables,
  type StarterOptions,
} from "../../init/starter-config.ts";
import { builtinPlugins, loadGatewayConfig } from "../../support/load-config.ts";
import {
  summarizeProblems,
  countErrors,
  shortPath,
  formatProblems,
} from "../../format/problem-report.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";
import { existsSync } from "node:fs";

export const command: CliCommand = {
  usage: "init [provider…] [options]",
  description:
    "Creates a starter gateway.yaml with the built-in defaults, or with the named " +
    "providers and their required settings. A provider is built in or installed next " +
    "to gateway.yaml. Secrets are read from variables. On a terminal and without " +
    "names, it asks for the settings, writes the file, and runs check. Otherwise it " +
    "prints the file, or writes it with --write.",
  options: {
    detect: { description: "Use the providers whose variables are set" },
    server: {
      placeholder: "address",
      description: "Base URL of your own server with the chat completions API",
    },
    budget: {
      placeholder: "dollars",
      description: "Monthly budget of each new key, in US dollars",
    },
    retention: {
      placeholder: "time",
      description: "How long ledger rows are kept, such as 400d",
    },
    write: { short: "w", description: "Write ./gateway.yaml and run check" },
    out: {
      short: "o",
      placeholder: "file",
      description: "Write the config to this file and run check",
    },
    force: { description: "Overwrite an existing file" },
  },
  positionals: { least: 0, most: 1_000 },
  examples: [
    "tollgate init",
    "tollgate init anthropic,openai > gateway.yaml",
    "tollgate init --detect --budget 50 --retention 400d --write",
  ],
  run,
};

async function run(given: CliInput): Promise<number> {
  const words = given.positionals.flatMap((word) => word.split(",")).filter(Boolean);
  const known = Object.keys(builtinPlugins.provider);
  const asks = process.stdin.isTTY && process.stdout.isTTY && words.length === 0 && !given.json;
  const found = asks || given.has("detect") ? await detectProviders(known) : [];
  const starter = asks
    ? await askInteractively(known, found)
    : starterFromOptions(given, words, found);
  const bare =
    starter.names.length === 0 && !starter.server && !starter.budget && !starter.retention;
  const file = given.getText("out") ?? (asks || given.has("write") ? "gateway.yaml" : undefined);
  const text = withEditorLine(
    bare ? readDefaultConfig() : await buildStarterConfig(starter),
    resolve(file ?? "gateway.yaml"),
  );
  if (file === undefined) {
    if (given.json) printJson({ providers: starter.names, text });
    else print(text.trimEnd());
    if (process.stdout.isTTY)
      printRemark(
        paintRemark("gray", "\nTo save it: tollgate init … > gateway.yaml, then tollgate check"),
      );
    return EXIT_CODES.ok;
  }
  return writeConfig(resolve(file), text, given);
}

function starterFromOptions(
  given: CliInput,
  words: readonly string[],
  found: readonly string[],
): StarterOptions {
  const [budget, retention] = [given.getText("budget"), given.getText("retention")];
  if (budget !== undefined && !/^\d{1,9}(\.\d{1,9})?$/.test(budget))
    fail("invalid", "--budget must be an amount in US dollars, such as 50 or 12.50.", {
      code: "usage",
    });
  if (retention !== undefined && parseDuration(retention) === undefined)
    fail("invalid", "--retention must be a duration with its unit, such as 400d.", {
      code: "usage",
    });
  const more = given.has("detect") && found.length === 0 && words.length === 0 ? ["demo"] : found;
  return {
    names: [...new Set([...words, ...more])],
    server: given.getText("server"),
    budget,
    retention,
  };
}

/**
 * Returns the providers whose required variables are all set. Excludes providers that require no
 * variable.
 */
async function detectProviders(known: readonly string[]): Promise<readonly string[]> {
  const needed = await requiredVariables(known);
  return known.filter((use) => {
    const variables = needed.get(use) ?? [];
    return variables.length > 0 && variables.every((name) => process.env[name]);
  });
}

async function askInteractively(
  known: readonly string[],
  found: readonly string[],
): Promise<StarterOptions> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await askStarterOptions({
      builtInProviders: known,
      detectedProviders: found,
      ask: (question) => terminal.question(question),
      print: printRemark,
    });
  } finally {
    terminal.close();
  }
}

async function writeConfig(file: string, text: string, given: CliInput): Promise<number> {
  try {
    await writeFile(file, text, { flag: given.has("force") ? "w" : "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return fail(
      "conflict",
      code === "EEXIST"
        ? `${shortPath(file)} already exists. To overwrite it, pass --force.`
        : message,
    );
  }
  const { problems } = await loadGatewayConfig(file);
  const ok = countErrors(problems) === 0;
  if (given.json) printJson({ ok, file, problems });
  else {
    if (problems.length > 0) printRemark(`${formatProblems(problems, paintRemark)}\n`);
    print(
      `Wrote ${shortPath(file)}: ${summarizeProblems(problems) || "no problems"}. Next: tollgate serve`,
    );
  }
  return ok ? EXIT_CODES.ok : EXIT_CODES.config;
}

// Sets the first line of gateway.yaml, which contains the path of its JSON schema for editors. The
// path is relative to that file and not to the shipped file.

const SCHEMA_PATH = "schemas/gateway.schema.json";
const SCHEMA_LINE = /^# yaml-language-server: \$schema=.*$/m;

/**
 * Returns the text with its first line.
 * @param text Content of `file`.
 * @param file Absolute path.
 */
function withEditorLine(text: string, file: string): string {
  return text.replace(
    SCHEMA_LINE,
    () => `# yaml-language-server: $schema=${findSchema(dirname(file))}`,
  );
}

/**
 * Returns the schema that `tollgate schema` wrote, if it exists, because it includes the folder's
 * own plugins.
 */
function findSchema(folder: string): string {
  if (existsSync(join(folder, SCHEMA_PATH))) return `./${SCHEMA_PATH}`;
  const shipped = join(findPackageRoot(), SCHEMA_PATH);
  const path = relative(folder, shipped);
  // A path inside the folder stays valid when the folder moves. A path outside of it does not.
  const beside = !path.startsWith("..") && !isAbsolute(path);
  return beside ? `./${path.split(sep).join("/")}` : shipped;
}
