// Which conversation a request belongs to: what its client calls it, or else what all of its turns have in common.
import { createHash, type Hash } from "node:crypto";
import type { Kind } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { ServerHalf } from "../../plugin/protocol.ts";
import { CACHE_MARKS } from "../../protocols/look/index.ts";

/** Headers in which clients name it. */
const HEADERS = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "x-session-affinity",
] as const;
/** Of a beginning no more is read: what is the same for so long goes to one place. */
const MOST = 64 * 1024;
const MOST_NAME = 256;
/** Deeper than this nothing is read. */
const MOST_DEPTH = 32;

const known = new WeakMap<Exchange, { readonly digest: string | undefined }>();

/**
 * The same for all turns of one conversation of one key, and for no other; it tells nothing of what stands in it. Undefined: there is
 * nothing to go by. `server`: how the client's protocol reads it.
 */
export function conversationOf(
  x: Exchange,
  server: ServerHalf<Kind> | undefined,
): string | undefined {
  let found = known.get(x);
  if (!found) known.set(x, (found = { digest: digestOf(x, server) }));
  return found.digest;
}

function digestOf(x: Exchange, server: ServerHalf<Kind> | undefined): string | undefined {
  const sum = createHash("sha256").update(`${JSON.stringify(x.identity?.id)}\n`);
  const named = HEADERS.map((header) => x.headers[header]).find(isName);
  const said = named === undefined ? server?.conversation?.(x.body) : undefined;
  const name = named ?? said?.name;
  if (isName(name)) sum.update(name);
  else if (!said?.begins.some((part) => part !== undefined && part !== null)) return undefined;
  else read(sum, said.begins, { left: MOST }, 0);
  return sum.digest("hex").slice(0, 32);
}

const isName = (said: unknown): said is string =>
  typeof said === "string" && said !== "" && said.length <= MOST_NAME;

/** Values with their places, so that no two of them run into one another. Cache marks wander from turn to turn, and say nothing. */
function read(sum: Hash, value: unknown, room: { left: number }, depth: number): void {
  if (room.left <= 0) return;
  if (typeof value !== "object" || value === null) {
    const text = String(value).slice(0, room.left);
    room.left -= text.length + 1;
    sum.update(`${typeof value}${text.length}:${text}`);
    return;
  }
  room.left--;
  sum.update(Array.isArray(value) ? "[" : "{");
  if (depth < MOST_DEPTH)
    for (const member in value) {
      if (room.left <= 0) break;
      if (CACHE_MARKS.has(member)) continue;
      if (!Array.isArray(value)) read(sum, member, room, depth);
      read(sum, (value as { [member: string]: unknown })[member], room, depth + 1);
    }
  sum.update("}");
}
