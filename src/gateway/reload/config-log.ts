// What the log says of a config: warnings when it is taken, reasons when it is not.
import type { Located } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import type { Reloaded } from "../types.ts";

const words = (p: Located): string =>
  `${p.path === "" ? "" : `${p.path}: `}${p.message}${p.hint === undefined ? "" : ` — ${p.hint}`}`;

const placeOf = (p: Located): string => `${p.file}:${p.line}:${p.column}`;

export function warn(log: Log, problems: readonly Located[]): void {
  for (const p of problems)
    if (p.severity === "warning") log.warn({ id: p.id, at: placeOf(p) }, words(p));
}

export function refusal(
  log: Log,
  of: {
    why: string;
    generation: number;
    problems: readonly Located[];
    /** Static keys that differ. */
    refused?: readonly string[];
  },
): Reloaded {
  const { why, generation, problems, refused } = of;
  const errors = problems
    .filter((p) => p.severity === "error")
    .map((p) => (p.line === 0 ? `${p.file}  ${words(p)}` : `${placeOf(p)}  ${words(p)}`));
  log.error(
    { why, generation, problems: errors, ...(refused && { refused }) },
    refused
      ? `reload refused: ${refused.join(", ")} cannot change while running; restart to apply`
      : "reload refused: the config has errors; the one before goes on",
  );
  return { ok: false, generation, problems, ...(refused && { refused }) };
}
