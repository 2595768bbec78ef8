import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, type CliInput } from "../../support/command.ts";
import {
  ConfigDraft,
  FINDING_KINDS,
  importers,
  importKeys,
  importTeams,
  slug,
  SourceValue,
  toKeysJson,
  type FindingKind,
  type ImportedKey,
  type Importer,
  type ImportFinding,
} from "../../../../plugins/importers/index.ts";
import { DEFAULT_FRONTENDS } from "../../../config/schema/config-schema.ts";
import { builtinPlugins, loadGatewayConfig } from "../../support/load-config.ts";
import { summarizeProblems, shortPath, formatProblems } from "../../format/problem-report.ts";
import { alignColumns, paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "import <litellm|portkey|bifrost> <file> [options]",
  description:
    "Converts another gateway's config to a gateway.yaml and prints it. Settings " +
    "without an equivalent are reported on stderr with their line and the reason. " +
    "With --out, it writes the files to a directory, moves keys into separate files, " +
    "and runs check. Keys that are imported by hash (--keys) keep working. Exits " +
    "with 1 if a setting is unsupported.",
  options: {
    out: {
      short: "o",
      placeholder: "directory",
      description: "Directory for gateway.yaml, secrets/, and keys.json",
    },
    keys: {
      placeholder: "file",
      description: "Export of the other gateway's keys, by hash: JSON or CSV",
    },
    teams: {
      placeholder: "file",
      description: "Export of the other gateway's teams, as JSON (imported as accounts)",
    },
    name: {
      placeholder: "model",
      description:
        "Model name that clients request, if the config names none (default: the base " +
        "name of the config file)",
    },
  },
  positionals: { least: 2, most: 2 },
  examples: [
    "tollgate import litellm config.yaml > gateway.yaml",
    "tollgate import litellm config.yaml --keys keys.csv --teams teams.json --out tollgate",
    "tollgate import portkey config.json --name assistant",
  ],
  run,
};

interface ImportResult {
  readonly text: string;
  readonly draft: ConfigDraft;
  readonly keys: readonly ImportedKey[];
  readonly findings: readonly ImportFinding[];
  readonly warnings: readonly string[];
}

async function run(given: CliInput): Promise<number> {
  const [source, file] = given.positionals as [string, string];
  const importer =
    importers.find(({ name }) => name === source) ??
    fail("invalid", `The source must be one of ${importers.map(({ name }) => name).join(", ")}.`, {
      code: "usage",
    });
  const made = await importConfig(importer, file, given);
  const out = given.getText("out");
  const written = out === undefined ? undefined : await write(made, resolve(out));
  const { findings, text, draft, keys, warnings } = made;
  if (given.json)
    printJson({
      findings,
      text,
      secrets: draft.secrets.map(({ file }) => file),
      keys: keys.map(toKeysJson),
      remarks: warnings,
      ...(written && { problems: written }),
    });
  else {
    if (out === undefined) print(text.trimEnd());
    printFindings(made, file, out);
    if (written && written.length > 0) printRemark(`\n${formatProblems(written, paintRemark)}`);
    if (written) printRemark(`\ntollgate check: ${summarizeProblems(written) || "valid"}`);
  }
  return findings.some(({ kind }) => kind === "unsupported") ? EXIT_CODES.failed : EXIT_CODES.ok;
}

async function importConfig(
  importer: Importer,
  file: string,
  given: CliInput,
): Promise<ImportResult> {
  const config = SourceValue.parse(await readFile(file, "utf8"), file);
  const draft = new ConfigDraft({
    providers: new Set(Object.keys(builtinPlugins.provider)),
    frontends: DEFAULT_FRONTENDS,
  });
  const modelName = given.getText("name") ?? slug(basename(file, extname(file)));
  const keys = importer.importConfig(config, draft, { modelName });
  const teams = given.getText("teams");
  const { accounts, source: teamsConfig } = teams
    ? await importTeams(teams, draft)
    : { accounts: new Map<string, string>(), source: undefined };
  const list = given.getText("keys");
  const imported = list ? await importKeys(list, accounts) : { keys: [], remarks: [] };
  for (const each of [config, ...(teamsConfig ? [teamsConfig] : [])])
    for (const rest of each.unreadValues()) rest.report("unsupported", "this setting is not read");
  const findings = [...config.findings, ...(teamsConfig?.findings ?? [])];
  const text = draft.toYaml(`${importer.name}'s ${basename(file)}`);
  return { text, draft, findings, keys: [...keys, ...imported.keys], warnings: imported.remarks };
}

async function write({ text, draft, keys }: ImportResult, folder: string) {
  const file = join(folder, "gateway.yaml");
  await mkdir(folder, { recursive: true });
  const put = (path: string, body: string, mode: number) =>
    writeFile(path, body, { mode, flag: "wx" }).catch((error: NodeJS.ErrnoException) =>
      fail(
        "conflict",
        error.code === "EEXIST" ? `${shortPath(path)} already exists.` : error.message,
      ),
    );
  await put(file, text, 0o644);
  for (const secret of draft.secrets) {
    await mkdir(dirname(join(folder, secret.file)), { recursive: true, mode: 0o700 });
    await put(join(folder, secret.file), `${secret.text}\n`, 0o600);
  }
  if (keys.length > 0)
    await put(
      join(folder, "keys.json"),
      `${JSON.stringify({ keys: keys.map(toKeysJson) }, null, 2)}\n`,
      0o600,
    );
  return (await loadGatewayConfig(file)).problems;
}

const KIND_COLORS = {
  exact: "green",
  approximate: "yellow",
  manual: "yellow",
  unsupported: "red",
} as const;

function printFindings(
  { findings, draft, keys, warnings }: ImportResult,
  file: string,
  out: string | undefined,
): void {
  const rows = [...findings]
    .sort((a, b) => a.line - b.line)
    .map(({ kind, at, line, message }) => [
      paintRemark(KIND_COLORS[kind], kind),
      `${shortPath(file)}:${line}`,
      at === "" ? message : `${at}: ${message}`,
    ]);
  if (rows.length > 0) printRemark(alignColumns(rows));
  const counts = FINDING_KINDS.map(
    (kind: FindingKind) => `${findings.filter((each) => each.kind === kind).length} ${kind}`,
  );
  printRemark(
    `\n${plural(draft.providers.size, "provider")}, ${plural(draft.routes.size, "model name")}, ${plural(draft.accounts.size, "account")}, ${plural(keys.length, "key")}; ${counts.join(", ")}`,
  );
  for (const line of warnings) printRemark(line);
  if (out === undefined && draft.secrets.length > 0)
    printRemark(
      `The config contains ${plural(draft.secrets.length, "key")}. To write them to separate files, pass --out.`,
    );
  if (keys.length > 0)
    printRemark(
      out === undefined
        ? "To write keys.json for tollgate keys import, pass --out."
        : `Next: tollgate keys import ${shortPath(join(resolve(out), "keys.json"))}`,
    );
}
