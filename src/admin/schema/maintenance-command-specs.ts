// Specifications of the ledger maintenance commands.
import type { CommandSpec } from "./command-spec.ts";
import { outputSchema, NO_INPUT, path, text, nonNegativeInteger } from "./schema-fields.ts";

export const MAINTENANCE_COMMAND_SPECS = {
  "ledger.status": {
    summary: "how large the ledger is, and how far back it goes",
    input: NO_INPUT,
    output: outputSchema("bytes", "prunedRows"),
    role: "metrics",
    writes: false,
    cli: "ledger status",
    worksOffline: true,
  },
  "ledger.archive": {
    summary: "write rows into a file that proves itself",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["file"],
      properties: {
        file: path("The file to write, which is not there yet: an absolute path"),
        before: nonNegativeInteger("Only commits from before this moment, in Unix milliseconds"),
        labels: { type: "boolean", description: "Whether it has what labels say; yes by default" },
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
    summary: "put sums in the place of old rows",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["before"],
      properties: {
        before: nonNegativeInteger(
          "Rows from before this moment, in Unix milliseconds; at least a day ago",
        ),
        dryRun: { type: "boolean", description: "Only say what would be done" },
        archive: path("Write the rows into this file first: an absolute path"),
      },
    },
    output: outputSchema("plan", "result"),
    role: "owner",
    writes: true,
    cli: "ledger prune",
    worksOffline: true,
  },
  erase: {
    summary: "take a person out of the ledger, for good",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        label: text("What a label says, as in user=4711"),
        key: text("The id of a key: its name, its labels, and those of all its rows"),
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
    summary: "copy everything that the gateway keeps into one file",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["file"],
      properties: { file: path("The file to write, which is not there yet: an absolute path") },
    },
    output: outputSchema("file", "bytes", "ms", "manifest"),
    role: "owner",
    writes: true,
    cli: "backup",
    changedRecord: { idMember: "file" },
    worksOffline: true,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
