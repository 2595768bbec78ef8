// Which reloads observers are told of, and why one was refused.
import type { Services } from "../services/services.ts";
import type { Reloaded, Status } from "../types.ts";

/** Tells observers of a reload that is news. */
export function tellReload(
  { observing, mask }: Pick<Services, "observing" | "mask">,
  before: Reloaded | undefined,
  now: NonNullable<Status["lastReload"]>,
): void {
  if (!isNews(before, now)) return;
  const { at, why, ok, generation } = now;
  const reason = reasonOf(now);
  const said = reason !== undefined && { reason: mask.text(reason) };
  observing.told({ type: "reloaded", at, why, ok, generation, ...said });
}

/**
 * Whether a reload is news. A file that says what runs is none, unless the reload before was refused: then it is known that nothing is
 * left undone. The same refusal again, of the same file by a signal, say, is none either.
 */
export function isNews(before: Reloaded | undefined, now: Reloaded): boolean {
  if (now.ok) return !now.unchanged || before?.ok === false;
  return before === undefined || before.ok || reasonOf(before) !== reasonOf(now);
}

/** The first error, with its place, and how many more there are; undefined: it was accepted. */
export function reasonOf({ ok, problems, refused }: Reloaded): string | undefined {
  if (ok) return undefined;
  if (refused) return `${refused.join(", ")} cannot change without a restart`;
  const [first, ...more] = problems.filter(({ severity }) => severity === "error");
  if (!first) return undefined;
  const { file, line, column, path, message } = first;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place} ${path === "" ? "" : `${path}: `}${message}${more.length > 0 ? ` (and ${more.length} more)` : ""}`;
}
