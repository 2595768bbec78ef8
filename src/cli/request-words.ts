// A request that is over, in one line.
import type { ShownRequest } from "../gateway/control/request-commands.ts";
import { inputTokens, outputTokens, type Usage } from "../model/usage.ts";
import { plural } from "../lib/text.ts";
import { formatUsd } from "../money/format.ts";
import type { RequestRecord } from "../plugin/observer.ts";
import { clean, moment, paint } from "./terminal.ts";

/** "840 ms", "12.3 s", "4 min 5 s" */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

export const colourOf = (status: number, broke: boolean): "red" | "yellow" | "green" =>
  status >= 500 || (broke && status < 400) ? "red" : status >= 400 ? "yellow" : "green";

export function requestLine(item: ShownRequest): string {
  const broke = "frontend" in item && item.fault !== undefined;
  return [
    paint("gray", moment(item.at).slice(0, 19)),
    item.id,
    paint(colourOf(item.status, broke), String(item.status)),
    ...("frontend" in item ? answered(item) : ["".padStart(8), turnedAway(item)]),
  ]
    .join("  ")
    .trimEnd();
}

const turnedAway = ({ code, method, listener }: Extract<ShownRequest, { listener: string }>) =>
  `${method ?? "-"} at the door${listener === "admin" ? " of the admin listener" : ""}: ${code}`;

function answered(item: Extract<ShownRequest, { frontend: string }>): string[] {
  const { ms, fault, cached } = item;
  return [
    span(ms).padStart(8),
    clean(item.keyName ?? item.key ?? "-"),
    modelOf(item),
    ...(item.calls.length > 0 ? [usedOf(item)] : []),
    ...(cached ? ["recorded answer"] : []),
    ...(item.calls.length > 1 ? [`${item.calls.length} attempts`] : []),
    ...(fault ? [paint(colourOf(item.status, true), faultWords(fault))] : []),
  ];
}

export const faultWords = ({ kind, code }: NonNullable<RequestRecord["fault"]>): string =>
  clean(code === undefined || code === null || code === kind ? kind : `${kind} ${code}`);

/** What was asked for, and what answered where that is another name. */
function modelOf({ model, calls }: RequestRecord): string {
  const last = calls.at(-1);
  const served = last && `${last.provider}/${last.model}`;
  const asked = clean(model.length > 60 ? `${model.slice(0, 59)}…` : model) || "-";
  return served === undefined || served === model ? asked : `${asked} → ${clean(served)}`;
}

function usedOf({ calls }: RequestRecord): string {
  const sum = (of: (usage: Usage) => number) =>
    calls.reduce((all, { usage }) => all + of(usage), 0);
  const images = sum((usage) => usage.images ?? 0);
  // Amounts cross as decimal text.
  const known = calls.filter(({ costNano }) => costNano !== null);
  const cost = known.reduce((sum, { costNano }) => sum + BigInt(costNano!), 0n);
  const pictures = images > 0 ? `${plural(images, "image")}, ` : "";
  const price = known.length < calls.length ? "no known price" : formatUsd(cost);
  return `${pictures}${sum(inputTokens)} in, ${sum(outputTokens)} out, ${price}`;
}
