import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { plural } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT, type CliInput } from "./command.ts";
import { bifrost } from "./import/bifrost.ts";
import { Draft, slug } from "./import/draft.ts";
import { keysOf, teamsOf, type ImportedKey } from "./import/grantees.ts";
import { litellm } from "./import/litellm.ts";
import { portkey } from "./import/portkey.ts";
import { KINDS, Said, type FindingKind, type ImportFinding } from "./import/said.ts";
import { writtenKey } from "./imported-keys.ts";
import { load } from "./loading.ts";
import { counted, near, reported } from "./report.ts";
import { columns, paintRemark, remark, say, sayJson } from "./terminal.ts";

const SOURCES = ["litellm", "portkey", "bifrost"] as const;

export const command: CliCommand = {
  usage: "import <litellm|portkey|bifrost> <file> [options]",
  about:
    "Reads another gateway's config and prints a gateway.yaml, and on stderr what has no equal and why, each with its line. With --out it " +
    "writes them into a folder, with keys that stood in the file in files of their own, and runs check. Keys by their hashes (--keys) go on " +
    "working unchanged. Exits with 1 when something is unsupported.",
  options: {
    out: { short: "o", value: "folder", about: "write gateway.yaml, secrets/ and keys.json there" },
    keys: { value: "file", about: "an export of its keys, by their hashes: JSON or CSV" },
    teams: { value: "file", about: "an export of its teams, as JSON: they become accounts" },
    name: {
      value: "model",
      about: "what clients ask for, where the file names no model; its own name by default",
    },
  },
  words: { least: 2, most: 2 },
  examples: [
    "tollgate import litellm config.yaml > gateway.yaml",
    "tollgate import litellm config.yaml --keys keys.csv --teams teams.json --out tollgate",
    "tollgate import portkey config.json --name assistant",
  ],
  run,
};

interface Imported {
  readonly text: string;
  readonly draft: Draft;
  readonly keys: readonly ImportedKey[];
  readonly findings: readonly ImportFinding[];
  readonly remarks: readonly string[];
}

async function run(given: CliInput): Promise<number> {
  const [source, file] = given.words as [string, string];
  if (!SOURCES.some((each) => each === source))
    return fail("invalid", `It is one of ${SOURCES.join(", ")}.`, { code: "usage" });
  const made = await imported(source, file, given);
  const out = given.text("out");
  const written = out === undefined ? undefined : await write(made, resolve(out));
  const { findings, text, draft, keys, remarks } = made;
  if (given.json)
    sayJson({
      findings,
      text,
      secrets: draft.secrets.map(({ file }) => file),
      keys: keys.map(writtenKey),
      remarks,
      ...(written && { problems: written }),
    });
  else {
    if (out === undefined) say(text.trimEnd());
    tell(made, file, out);
    if (written && written.length > 0) remark(`\n${reported(written, paintRemark)}`);
    if (written) remark(`\ntollgate check: ${counted(written) || "fine"}`);
  }
  return findings.some(({ kind }) => kind === "unsupported") ? EXIT.failed : EXIT.fine;
}

/** What another gateway's config comes to. */
async function imported(source: string, file: string, given: CliInput): Promise<Imported> {
  const said = Said.of(await readFile(file, "utf8"), file);
  const draft = new Draft();
  const keys: ImportedKey[] = [];
  if (source === "litellm") litellm(said, draft);
  else if (source === "bifrost") keys.push(...bifrost(said, draft));
  else portkey(said, draft, given.text("name") ?? slug(basename(file, extname(file))));
  const teams = given.text("teams");
  const { accounts, said: more } = teams
    ? await teamsOf(teams, draft)
    : { accounts: new Map<string, string>(), said: undefined };
  const list = given.text("keys");
  const told = list ? await keysOf(list, accounts) : { keys: [], remarks: [] };
  for (const each of [said, ...(more ? [more] : [])])
    for (const rest of each.unread()) rest.find("unsupported", "nothing here reads it");
  const findings = [...said.findings, ...(more?.findings ?? [])];
  const text = draft.text(`${source}'s ${basename(file)}`);
  return { text, draft, findings, keys: [...keys, ...told.keys], remarks: told.remarks };
}

async function write({ text, draft, keys }: Imported, folder: string) {
  const file = join(folder, "gateway.yaml");
  await mkdir(folder, { recursive: true });
  const put = (path: string, body: string, mode: number) =>
    writeFile(path, body, { mode, flag: "wx" }).catch((error: NodeJS.ErrnoException) =>
      fail("conflict", error.code === "EEXIST" ? `${near(path)} is there already.` : error.message),
    );
  await put(file, text, 0o644);
  for (const secret of draft.secrets) {
    await mkdir(dirname(join(folder, secret.file)), { recursive: true, mode: 0o700 });
    await put(join(folder, secret.file), `${secret.text}\n`, 0o600);
  }
  if (keys.length > 0)
    await put(
      join(folder, "keys.json"),
      `${JSON.stringify({ keys: keys.map(writtenKey) }, null, 2)}\n`,
      0o600,
    );
  return (await load(file)).problems;
}

const COLOUR = {
  exact: "green",
  approximate: "yellow",
  manual: "yellow",
  unsupported: "red",
} as const;

function tell(
  { findings, draft, keys, remarks }: Imported,
  file: string,
  out: string | undefined,
): void {
  const rows = [...findings]
    .sort((a, b) => a.line - b.line)
    .map(({ kind, at, line, message }) => [
      paintRemark(COLOUR[kind], kind),
      `${near(file)}:${line}`,
      at === "" ? message : `${at}: ${message}`,
    ]);
  if (rows.length > 0) remark(columns(rows));
  const counts = KINDS.map(
    (kind: FindingKind) => `${findings.filter((each) => each.kind === kind).length} ${kind}`,
  );
  remark(
    `\n${plural(draft.providers.size, "provider")}, ${plural(draft.routes.size, "model name")}, ${plural(draft.accounts.size, "account")}, ${plural(keys.length, "key")}; ${counts.join(", ")}`,
  );
  for (const line of remarks) remark(line);
  if (out === undefined && draft.secrets.length > 0)
    remark(
      `${plural(draft.secrets.length, "key")} stood in the file: --out writes them into files of their own.`,
    );
  if (keys.length > 0)
    remark(
      out === undefined
        ? "--out writes keys.json, which tollgate keys import takes."
        : `Then: tollgate keys import ${near(join(resolve(out), "keys.json"))}`,
    );
}
