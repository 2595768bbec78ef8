import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { defaultText } from "../config/default.ts";
import { parseDuration } from "../lib/duration.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT, type CliInput } from "./command.ts";
import { withEditorLine } from "./init/editor-line.ts";
import { interview } from "./init/interview.ts";
import { starter, variablesOf, type Starting } from "./init/starter.ts";
import { builtins, load } from "./loading.ts";
import { counted, errorsIn, near, reported } from "./report.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "init [provider…] [options]",
  about:
    "Makes a gateway.yaml to start from: what ships with Tollgate, or the providers that are named, each with what it takes. A name is " +
    "that of a provider that comes with Tollgate or of one that is installed beside gateway.yaml. Secrets come from variables. On a " +
    "terminal, and without a name, it asks, writes the file and runs check; elsewhere it prints, or writes with --write.",
  options: {
    detect: { about: "the providers whose variables are set" },
    server: { value: "address", about: "a server of your own that speaks chat completions" },
    budget: { value: "dollars", about: "what each new key may cost in a month" },
    keep: { value: "time", about: "how long rows of the ledger are kept, as in 400d" },
    write: { short: "w", about: "write ./gateway.yaml, and run check" },
    out: { short: "o", value: "file", about: "write it there, and run check" },
    force: { about: "in place of a file that is there" },
  },
  words: { least: 0, most: 1_000 },
  examples: [
    "tollgate init",
    "tollgate init anthropic,openai > gateway.yaml",
    "tollgate init --detect --budget 50 --keep 400d --write",
  ],
  run,
};

async function run(given: CliInput): Promise<number> {
  const words = given.words.flatMap((word) => word.split(",")).filter(Boolean);
  const known = Object.keys(builtins.provider);
  const asks = process.stdin.isTTY && process.stdout.isTTY && words.length === 0 && !given.json;
  const found = asks || given.has("detect") ? await detected(known) : [];
  const said = asks ? await asked(known, found) : saidIn(given, words, found);
  const bare = said.names.length === 0 && !said.server && !said.budget && !said.keep;
  const file = given.text("out") ?? (asks || given.has("write") ? "gateway.yaml" : undefined);
  const text = withEditorLine(
    bare ? defaultText() : await starter(said),
    resolve(file ?? "gateway.yaml"),
  );
  if (file === undefined) {
    if (given.json) sayJson({ providers: said.names, text });
    else say(text.trimEnd());
    if (process.stdout.isTTY)
      remark(paintRemark("gray", "\nKeep it: tollgate init … > gateway.yaml, then tollgate check"));
    return EXIT.fine;
  }
  return written(resolve(file), text, given);
}

function saidIn(given: CliInput, words: readonly string[], found: readonly string[]): Starting {
  const [budget, keep] = [given.text("budget"), given.text("keep")];
  if (budget !== undefined && !/^\d{1,9}(\.\d{1,9})?$/.test(budget))
    fail("invalid", "--budget is an amount of dollars, such as 50 or 12.50.", { code: "usage" });
  if (keep !== undefined && parseDuration(keep) === undefined)
    fail("invalid", "--keep is a time with its unit, such as 400d.", { code: "usage" });
  const more = given.has("detect") && found.length === 0 && words.length === 0 ? ["demo"] : found;
  return { names: [...new Set([...words, ...more])], server: given.text("server"), budget, keep };
}

/** Providers that have all that they must be given. One that needs nothing is not found by that. */
async function detected(known: readonly string[]): Promise<readonly string[]> {
  const needed = await variablesOf(known);
  return known.filter((use) => {
    const variables = needed.get(use) ?? [];
    return variables.length > 0 && variables.every((name) => process.env[name]);
  });
}

async function asked(known: readonly string[], found: readonly string[]): Promise<Starting> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await interview({
      known,
      found,
      ask: (question) => terminal.question(question),
      say: remark,
    });
  } finally {
    terminal.close();
  }
}

async function written(file: string, text: string, given: CliInput): Promise<number> {
  try {
    await writeFile(file, text, { flag: given.has("force") ? "w" : "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return fail(
      "conflict",
      code === "EEXIST" ? `${near(file)} is there already. --force writes in its place.` : message,
    );
  }
  const { problems } = await load(file);
  const ok = errorsIn(problems) === 0;
  if (given.json) sayJson({ ok, file, problems });
  else {
    if (problems.length > 0) remark(`${reported(problems, paintRemark)}\n`);
    say(`${near(file)} is written: ${counted(problems) || "no problems"}. Next: tollgate serve`);
  }
  return ok ? EXIT.fine : EXIT.config;
}
