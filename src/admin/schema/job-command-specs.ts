// Specifications of the commands for jobs.
import type { CommandSpec } from "./command-spec.ts";
import { integerUpTo, nameOf, outputSchema, text, withCli } from "./schema-fields.ts";

const ACCOUNT_FIELD = nameOf("Account whose jobs are included, with nested accounts");
const ID_FIELD = text("ID of the job, which clients and tollgate jobs show");

export const JOB_COMMAND_SPECS = {
  "jobs.list": {
    summary: "List jobs, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        kind: withCli(text("Kind of the jobs, such as batch"), { value: "kind" }),
        status: {
          enum: [
            "open",
            "queued",
            "running",
            "canceling",
            "completed",
            "failed",
            "expired",
            "canceled",
          ],
          description: "Status of the jobs. open: queued, running, and canceling",
        },
        key: withCli(text("ID or name of the key that created the jobs"), { value: "key" }),
        account: ACCOUNT_FIELD,
        limit: integerUpTo(500, "Maximum number of jobs. Default: 100"),
        after: withCli(text("Cursor: `next` of the previous response, to list older jobs"), {
          value: "cursor",
        }),
      },
    },
    output: outputSchema("items", "isTruncated"),
    role: "viewer",
    writes: false,
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    cli: {
      words: "jobs list",
      description:
        "Lists jobs, such as batches, of all gateways on the store: status, progress, key, model, and cost so far. It shows nothing of their requests and results.",
      examples: ["tollgate jobs", "tollgate jobs list --status open --account web --json"],
    },
    worksOffline: false,
  },
  "jobs.show": {
    summary: "Show a job",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: { id: ID_FIELD, account: ACCOUNT_FIELD },
    },
    output: outputSchema("job"),
    role: "viewer",
    writes: false,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    cli: {
      words: "jobs show",
      description:
        "Shows a job: its status, progress, providers, and cost so far, and the request that created it.",
      args: ["id"],
      examples: ["tollgate jobs show batch_3kTQ --json"],
      exits: "Exits with 1 if there is no such job.",
    },
    worksOffline: false,
  },
  "jobs.cancel": {
    summary: "Cancel a job",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: { id: ID_FIELD, account: ACCOUNT_FIELD },
    },
    output: outputSchema("job"),
    role: "operator",
    writes: true,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    changedRecord: { idMember: "id" },
    cli: {
      words: "jobs cancel",
      description:
        "Requests the cancellation of a job at its providers. Work that ran before is billed, and the rest of the reservation is released when the job has ended. A job that has ended is unchanged.",
      args: ["id"],
      examples: ["tollgate jobs cancel batch_3kTQ"],
      exits: "Exits with 1 if there is no such job, or if it has ended.",
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
