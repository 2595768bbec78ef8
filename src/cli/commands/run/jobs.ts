import type { JobDetails, ShownJob, ShownJobs } from "../../../admin/commands/job-commands.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "jobs",
  "Lists, shows, and cancels jobs, such as batches. The default command is list.",
  {
    list: gatewayCommand<ShownJobs>("jobs.list", {
      print: (answer) => print(formatJobs(answer)),
    }),
    show: gatewayCommand<JobDetails>("jobs.show", { print: ({ job }) => print(formatJob(job)) }),
    cancel: gatewayCommand<JobDetails>("jobs.cancel", {
      print: ({ job }) => print(`${job.id} is ${job.status}.`),
    }),
  },
  "list",
);

const TITLES = ["id", "status", "progress", "key", "account", "model", "cost (USD)", "created"];

export function formatJobs({ items, next }: ShownJobs): string {
  const more = next && paint("gray", `There are older jobs. Use --after ${next}.`);
  if (items.length === 0) return more ?? "No jobs.";
  const rows = items.map((job) => [
    job.id,
    job.status,
    progressOf(job),
    job.keyName ?? job.key,
    job.account ?? "",
    job.model ?? "",
    job.costUsd ?? "",
    timeOf(job.createdAt),
  ]);
  const lines = [alignColumns([TITLES.map((title) => paint("gray", title)), ...rows])];
  if (more !== undefined) lines.push(more);
  return lines.join("\n");
}

export function formatJob(job: ShownJob): string {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["id", job.id],
    ["kind", job.kind],
    ["status", job.status],
    ["progress", progressOf(job)],
    ["message", job.message ?? undefined],
    ["key", job.keyName === undefined ? job.key : `${job.keyName} (${job.key})`],
    ["account", job.account],
    ["model", job.model ?? undefined],
    ["providers", job.providers?.join(", ")],
    ["cost so far (USD)", job.costUsd],
    ["created", timeOf(job.createdAt)],
    ["ended", job.endedAt == null ? undefined : timeOf(job.endedAt)],
    ["created by request", job.request],
  ];
  return alignColumns(
    rows
      .filter((row): row is readonly [string, string] => row[1] !== undefined && row[1] !== "")
      .map(([name, value]) => [paint("gray", name), value]),
  );
}

function progressOf({ progress }: ShownJob): string {
  if (!progress) return "";
  const { done, total, failed } = progress;
  return `${done}/${total}${failed > 0 ? `, ${failed} failed` : ""}`;
}

const timeOf = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
