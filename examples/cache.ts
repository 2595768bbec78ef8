// examples/cache.ts
import { createHash } from "node:crypto";
import { defineMiddleware, type Exchange, type RecordedResponse } from "tollgate/plugin";

interface Entry {
  readonly response: RecordedResponse;
  /** Cost of the recorded call in nano-dollars; null if its price is unknown. */
  readonly costNano: bigint | null;
  readonly expiresAt: number;
}

/** The cache of one process. Entries are ordered from the oldest to the newest. */
interface Cache {
  readonly entries: Map<string, Entry>;
  bytes: number;
  savedNano: bigint;
}

/** Hashes everything that the response depends on. The key's ID is included, so keys share no responses. */
function cacheKey(x: Exchange): string {
  const parts = [x.identity?.id, x.frontend, x.protocol, x.action, x.stream, x.model, x.body];
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64");
}

function remove(cache: Cache, key: string): void {
  const entry = cache.entries.get(key);
  if (!entry) return;
  cache.entries.delete(key);
  cache.bytes -= entry.response.body.length;
}

function insert(cache: Cache, key: string, entry: Entry, maxBytes: number): void {
  remove(cache, key);
  cache.entries.set(key, entry);
  cache.bytes += entry.response.body.length;
  for (const oldest of cache.entries.keys()) {
    if (cache.bytes <= maxBytes) break;
    remove(cache, oldest);
  }
}

export default defineMiddleware({
  api: 1,
  name: "cache",
  summary: "Returns the same response to repeated requests of a key",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      lifetime_s: {
        type: "integer",
        minimum: 1,
        default: 300,
        description: "How long a response is reused, in seconds",
      },
      max_mb: {
        type: "integer",
        minimum: 1,
        default: 64,
        description: "Maximum size of the cache, in megabytes",
      },
    },
  },
  setup({ lifetime_s, max_mb }, ctx) {
    const maxBytes = max_mb * 1024 * 1024;
    // Kept across reloads: the next config generation receives the same object.
    const cache = ctx.shared("cache", (): Cache => ({
      entries: new Map(),
      bytes: 0,
      savedNano: 0n,
    }));
    return {
      async attempt(call, next) {
        const x = call.exchange;
        if (x.privacy !== "off" || x.actionType !== "generate") return next();
        const key = cacheKey(x);
        const found = cache.entries.get(key);
        if (found && found.expiresAt > Date.now()) {
          x.setResponseHeader("x-cache", "hit");
          cache.savedNano += found.costNano ?? 0n;
          return found.response;
        }
        remove(cache, key);
        x.setResponseHeader("x-cache", "miss");
        const reply = await next();
        // The promises are not awaited, because they resolve after the client has received the
        // whole response.
        void Promise.all([
          reply.recordResponse(Math.floor(maxBytes / 8)),
          reply.whenSettled(),
        ]).then(([response, { costNano }]) => {
          const expiresAt = Date.now() + lifetime_s * 1000;
          if (response) insert(cache, key, { response, costNano, expiresAt }, maxBytes);
        });
        return reply;
      },
      commands: {
        size: {
          summary: "Show the number of cached responses, their size, and the saved cost",
          run: async () => ({
            responses: cache.entries.size,
            bytes: cache.bytes,
            saved_nano_usd: String(cache.savedNano),
          }),
        },
      },
    };
  },
});
