// What an answer was when it was read, in one word: for a client that changes something only if it is still so.
import { hash } from "node:crypto";
import { plain } from "./asking.ts";

/** Of records that count their versions by these alone: what was spent since is no change of a key. */
export function etagOf(answer: unknown): string {
  const versions = versionsIn(answer);
  const said = versions.length > 0 ? versions : answer;
  return `"${hash("sha256", JSON.stringify(said ?? null, plain)).slice(0, 32)}"`;
}

/** Of the records in its lists, each with its id. */
function versionsIn(answer: unknown): readonly unknown[] {
  if (typeof answer !== "object" || answer === null) return [];
  return Object.values(answer)
    .flat()
    .filter((each): each is { id: unknown; version: unknown } => each?.version !== undefined)
    .map(({ id, version }) => [id, version]);
}
