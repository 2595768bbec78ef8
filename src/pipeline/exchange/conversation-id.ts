// Derives a conversation ID from the client's own ID, or from the part of the request that all
// turns of the conversation share.
import { createHash, type Hash } from "node:crypto";
import type { Operation } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { ServerHalf } from "../../plugin/protocol.ts";
import { CACHE_MARKS } from "../../protocols/references/index.ts";

/** Headers in which clients send a conversation ID. */
const CONVERSATION_HEADERS = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "x-session-affinity",
] as const;
/**
 * Maximum number of characters of a prefix that are hashed. Conversations with the same first 64 Ki
 * characters are routed to the same place.
 */
const MAX_HASHED_CHARS = 64 * 1024;
const MAX_NAME_LENGTH = 256;
/** Depth below which values are not hashed. */
const MAX_DEPTH = 32;

const cached = new WeakMap<Exchange, { readonly digest: string | undefined }>();

/**
 * Returns an ID that is the same for all turns of one conversation of one key, and that does not
 * reveal its content. Returns undefined if the request has neither an ID nor a prefix. `server`:
 * the client's protocol, which extracts the ID and the prefix from the body.
 */
export function conversationIdOf(
  x: Exchange,
  server: ServerHalf<Operation> | undefined,
): string | undefined {
  let found = cached.get(x);
  if (!found) cached.set(x, (found = { digest: computeConversationId(x, server) }));
  return found.digest;
}

function computeConversationId(
  x: Exchange,
  server: ServerHalf<Operation> | undefined,
): string | undefined {
  const sum = createHash("sha256").update(`${JSON.stringify(x.identity?.id)}\n`);
  const named = CONVERSATION_HEADERS.map((header) => x.headers[header]).find(isName);
  const conversation = named === undefined ? server?.conversationKey?.(x.body) : undefined;
  const name = named ?? conversation?.id;
  if (isName(name)) sum.update(name);
  else if (!conversation?.prefix.some((part) => part !== undefined && part !== null))
    return undefined;
  else hashValue(sum, conversation.prefix, { left: MAX_HASHED_CHARS }, 0);
  return sum.digest("hex").slice(0, 32);
}

const isName = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= MAX_NAME_LENGTH;

/**
 * Hashes values with their positions, so that different structures have different hashes. Cache
 * marks are skipped, because they move from turn to turn.
 */
function hashValue(hash: Hash, value: unknown, budget: { left: number }, depth: number): void {
  if (budget.left <= 0) return;
  if (typeof value !== "object" || value === null) {
    const text = String(value).slice(0, budget.left);
    budget.left -= text.length + 1;
    hash.update(`${typeof value}${text.length}:${text}`);
    return;
  }
  budget.left--;
  hash.update(Array.isArray(value) ? "[" : "{");
  if (depth < MAX_DEPTH)
    for (const member in value) {
      if (budget.left <= 0) break;
      if (CACHE_MARKS.has(member)) continue;
      if (!Array.isArray(value)) hashValue(hash, member, budget, depth);
      hashValue(hash, (value as { [member: string]: unknown })[member], budget, depth + 1);
    }
  hash.update("}");
}
