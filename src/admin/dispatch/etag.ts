// What an answer was when it was read, in one word: for a client that changes something only if it is still so.
import { hash } from "node:crypto";
import { jsonReplacer } from "../socket/control-client.ts";

/** Of records that count their versions by these alone: what was spent since is no change of a key. */
export function createEtag(answer: unknown): string {
  const versions = listVersions(answer);
  const content = versions.length > 0 ? versions : answer;
  return `"${hash("sha256", JSON.stringify(content ?? null, jsonReplacer)).slice(0, 32)}"`;
}

/** Of the records in its lists, each with its id. */
function listVersions(answer: unknown): readonly unknown[] {
  if (typeof answer !== "object" || answer === null) return [];
  return Object.values(answer)
    .flat()
    .filter((each): each is { id: unknown; version: unknown } => each?.version !== undefined)
    .map(({ id, version }) => [id, version]);
}
