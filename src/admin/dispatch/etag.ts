// Computes the ETag of an answer, so that a client can change a record only if it is unchanged.
import { hash } from "node:crypto";
import { jsonReplacer } from "../socket/control-client.ts";

/**
 * Returns the ETag. If the records have versions, only these count, because spending does not
 * change a key.
 */
export function createEtag(answer: unknown): string {
  const versions = listVersions(answer);
  const content = versions.length > 0 ? versions : answer;
  return `"${hash("sha256", JSON.stringify(content ?? null, jsonReplacer)).slice(0, 32)}"`;
}

/** Returns the IDs and versions of the records in an answer. */
function listVersions(answer: unknown): readonly unknown[] {
  if (typeof answer !== "object" || answer === null) return [];
  return Object.values(answer)
    .flat()
    .filter((each): each is { id: unknown; version: unknown } => each?.version !== undefined)
    .map(({ id, version }) => [id, version]);
}
