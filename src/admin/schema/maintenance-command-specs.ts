// Specifications of the ledger maintenance commands.
import type { CommandSpec } from "./command-spec.ts";
import { outputSchema, NO_INPUT, path, text, nonNegativeInteger } from "./schema-fields.ts";

export const MAINTENANCE_COMMAND_SPECS = {
  "ledger.status": {
    summary: "Show the size and age of the ledger",
    input: NO_INPUT,
    output: outputSchema("bytes", "prunedRows"),
    role: "metrics",
    writes: false,
    cli: "ledger status",
    worksOffline: true,
  },
  "ledger.archive": {
    summary: "Archive ledger rows to a verifiable file",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["file"],
      properties: {
        file: path("Absolute path of a new file"),
        before: nonNegativeInteger("End time of the commits, exclusive, in Unix milliseconds"),
        labels: {
          type: "boolean",
          description: "Whether the values of labels are included. Default: true",
        },
      },
    },
    output: outputSchema("file", "bytes", "rows", "lastHash", "total"),
    role: "owner",
    writes: true,
    cli: "ledger archive",
    changedRecord: { idMember: "file" },
    worksOffline: true,
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
        dryRun: {
          type: "boolean",
          description: "Whether to report the changes without making them",
        },
        archive: path("Absolute path of a file to archive the rows to first"),
      },
    },
    output: outputSchema("plan", "result"),
    role: "owner",
    writes: true,
    cli: "ledger prune",
    worksOffline: true,
  },
  erase: {
    summary: "Permanently erase personal data from the ledger",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        label: text("Label to erase, as in user=4711"),
        key: text("ID of the key whose name and labels are erased in all its rows"),
      },
    },
    output: outputSchema("texts", "hashes"),
    role: "owner",
    writes: true,
    cli: "erase",
    redactedInput: ["label"],
    worksOffline: true,
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
    cli: "backup",
    changedRecord: { idMember: "file" },
    worksOffline: true,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
