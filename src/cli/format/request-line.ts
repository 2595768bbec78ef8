// Formats a finished request as one line.
import type { ShownRequest } from "../../admin/commands/request-commands.ts";
import { inputTokens, outputTokens, type Usage } from "../../model/usage.ts";
import { plural } from "../../lib/text.ts";
import { formatUsd } from "../../money/decimal.ts";
import type { RequestRecord } from "../../plugin/observer.ts";
import { sanitize, formatTime, paint } from "./terminal.ts";

/** Formats a duration: "840 ms", "12.3 s", "4 min 5 s". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

export const statusColor = (status: number, broke: boolean): "red" | "yellow" | "green" =>
  status >= 500 || (broke && status < 400) ? "red" : status >= 400 ? "yellow" : "green";

export function formatRequestLine(item: ShownRequest): string {
  const broke = "frontend" in item && item.fault !== undefined;
  return [
    paint("gray", formatTime(item.at).slice(0, 19)),
    item.id,
    paint(statusColor(item.status, broke), String(item.status)),
    ...("frontend" in item ? formatServed(item) : ["".padStart(8), formatRejected(item)]),
  ]
    .join("  ")
    .trimEnd();
}

const formatRejected = ({ code, method, listener }: Extract<ShownRequest, { listener: string }>) =>
  `${method ?? "-"} rejected before routing${listener === "admin" ? " (admin listener)" : ""}: ${code}`;

function formatServed(item: Extract<ShownRequest, { frontend: string }>): string[] {
  const { ms, fault, cached } = item;
  return [
    formatDuration(ms).padStart(8),
    sanitize(item.keyName ?? item.key ?? "-"),
    formatModel(item),
    ...(item.calls.length > 0 ? [formatUsage(item)] : []),
    ...(cached ? ["cached response"] : []),
    ...(item.calls.length > 1 ? [`${item.calls.length} attempts`] : []),
    ...(fault ? [paint(statusColor(item.status, true), formatFault(fault))] : []),
  ];
}

export const formatFault = ({ kind, code }: NonNullable<RequestRecord["fault"]>): string =>
  sanitize(code === undefined || code === null || code === kind ? kind : `${kind} ${code}`);

/** Returns the requested model, and the model that served the request if its name differs. */
function formatModel({ model, calls }: RequestRecord): string {
  const last = calls.at(-1);
  const served = last && `${last.provider}/${last.model}`;
  const requested = sanitize(model.length > 60 ? `${model.slice(0, 59)}…` : model) || "-";
  return served === undefined || served === model
    ? requested
    : `${requested} → ${sanitize(served)}`;
}

function formatUsage({ calls }: RequestRecord): string {
  const sum = (of: (usage: Usage) => number) =>
    calls.reduce((all, { usage }) => all + of(usage), 0);
  const images = sum((usage) => usage.images ?? 0);
  // Amounts are sent as decimal text.
  const known = calls.filter(({ costNano }) => costNano !== null);
  const cost = known.reduce((sum, { costNano }) => sum + BigInt(costNano!), 0n);
  const pictures = images > 0 ? `${plural(images, "image")}, ` : "";
  const price = known.length < calls.length ? "no known price" : formatUsd(cost);
  return `${pictures}${sum(inputTokens)} in, ${sum(outputTokens)} out, ${price}`;
}
