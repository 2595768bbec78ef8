// Specifications of the ledger maintenance commands.
import type { CommandSpec } from "./command-spec.ts";
import {
  booleanField,
  outputSchema,
  NO_INPUT,
  path,
  text,
  nonNegativeInteger,
  timeOf,
  withCli,
} from "./schema-fields.ts";

export const MAINTENANCE_COMMAND_SPECS = {
  "ledger.status": {
    summary: "Show the size and age of the ledger",
    input: NO_INPUT,
    output: outputSchema("bytes", "prunedRows"),
    role: "metrics",
    writes: false,
    cli: {
      words: "ledger status",
      description:
        "Shows the size of the ledger on disk, the time of its oldest row, and the " +
        "number of rows that rollups replaced.",
      examples: ["tollgate ledger status"],
    },
    worksOffline: "store",
  },
  "ledger.archive": {
    summary: "Archive ledger rows to a verifiable file",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["file"],
      properties: {
        file: withCli(path("Absolute path of a new file"), { value: "file", form: "path" }),
        before: timeOf("End time of the commits, exclusive", "before"),
        labels: withCli(booleanField("Whether the values of labels are included. Default: true"), {
          flag: "no-labels",
          form: "negated",
          description: "Leave out label values",
        }),
      },
    },
    output: outputSchema("file", "bytes", "rows", "lastHash", "total"),
    role: "owner",
    writes: true,
    cli: {
      words: "ledger archive",
      description:
        "Writes ledger rows as gzip-compressed JSON lines, with a proof of integrity. " +
        "The rows are kept in the ledger. With --verify, the command reads an " +
        "archive and verifies it without the ledger.",
      args: ["file"],
      examples: [
        "tollgate ledger archive 2026.jsonl.gz --before 2027-01-01",
        "tollgate ledger archive 2026.jsonl.gz --verify",
      ],
      exits: "With --verify, exits with 1 if the archive was changed.",
    },
    changedRecord: { idMember: "file" },
    worksOffline: "store",
  },
  "ledger.prune": {
    summary: "Replace old ledger rows by rollups",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["before"],
      properties: {
        before: nonNegativeInteger(
          "End time of the rows, in Unix milliseconds. Must be at least one day ago",
        ),
        dryRun: withCli(booleanField("Whether to report the changes without making them"), {
          flag: "dry-run",
          description: "Report the number of rows, bytes, and time, and prune nothing",
        }),
        archive: withCli(path("Absolute path of a file to archive the rows to first"), {
          flag: "archive-first",
          value: "file",
          form: "path",
          description: "Archive for the rows, written before they are pruned",
        }),
      },
    },
    output: outputSchema("plan", "result"),
    role: "owner",
    writes: true,
    cli: {
      words: "ledger prune",
      description:
        "Removes the oldest rows in whole commits and replaces them with totals. " +
        "Reports, budgets, and the hash chain do not change. Only the rows and their " +
        "labels are removed. The command runs in short steps while a gateway is " +
        "running, and resumes after an interruption. Rows are kept while an older " +
        "call is open. To " +
        "see the effect first, pass --dry-run.",
      examples: [
        "tollgate ledger prune --older 400d --dry-run",
        "tollgate ledger prune --older 400d --archive-first old.jsonl.gz",
      ],
    },
    worksOffline: "store",
  },
  erase: {
    summary: "Permanently erase personal data from the ledger",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        label: withCli(text("Label to erase, such as user=4711"), { value: "name=value" }),
        key: withCli(text("ID of the key whose name and labels are erased in all its rows"), {
          value: "id",
        }),
        account: withCli(
          text(
            "ID of the account whose name, labels, jobs, and keys are erased, without nested accounts",
          ),
          { value: "id" },
        ),
      },
    },
    output: outputSchema("texts", "hashes"),
    role: "owner",
    writes: true,
    cli: {
      words: "erase",
      description:
        'Permanently erases personal data from the ledger: the value of a label, the name and label values of a key, or those of an account and of all keys in it. The jobs of the key or account are deleted: its files, uploads, batches, background responses, and webhooks. Their content is unreadable from then on. Running jobs must be canceled first. Rows, totals, and budgets stay, and the ledger still verifies. Reports show "erased" instead. Erasing cannot be undone. Earlier backups and archives still contain the data. To remove it from a backup, use tollgate restore --erased-in.',
      examples: [
        "tollgate erase --label user=4711",
        "tollgate erase --key k_7f3a",
        "tollgate erase --account acme",
      ],
    },
    redactedInput: ["label"],
    worksOffline: "store",
  },
  backup: {
    summary: "Create a backup of the gateway",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["file"],
      properties: { file: path("Absolute path of a new file") },
    },
    output: outputSchema("file", "bytes", "ms", "manifest"),
    role: "owner",
    writes: true,
    cli: {
      words: "backup",
      description:
        "Copies everything that the gateway stores into one file: a consistent " +
        "snapshot of the ledger with keys and limits, the key that signs addresses, " +
        "and the last model lists. A running gateway continues to serve requests. The " +
        "file is a tar archive that only its owner can read. To create a state " +
        "directory from it, use tollgate restore.",
      examples: [
        "tollgate backup /backups/monday.tar",
        "tollgate backup --to - | ssh vault 'cat > tollgate.tar'",
      ],
    },
    changedRecord: { idMember: "file" },
    worksOffline: "store",
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
