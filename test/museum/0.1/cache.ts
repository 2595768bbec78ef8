// As it was written for Tollgate 0.1. Nothing here is changed: what api 1 promised to it is kept.
import { createHash } from "node:crypto";
import { defineMiddleware, type Exchange, type RecordedResponse } from "tollgate/plugin";

interface Kept {
  readonly answer: RecordedResponse;
  /** What it cost when a provider was asked, in nano-dollars; null: its price is not known. */
  readonly costNano: bigint | null;
  readonly until: number;
}

/** Answers of one process, oldest first. */
interface Shelf {
  readonly kept: Map<string, Kept>;
  bytes: number;
  savedNano: bigint;
}

/** Everything that the answer depends on. The key's id is part of it: no key is shown what another one asked. */
function nameOf(x: Exchange): string {
  const asked = [x.identity?.id, x.frontend, x.protocol, x.action, x.stream, x.model, x.body];
  return createHash("sha256").update(JSON.stringify(asked)).digest("base64");
}

function drop(shelf: Shelf, name: string): void {
  const found = shelf.kept.get(name);
  if (!found) return;
  shelf.kept.delete(name);
  shelf.bytes -= found.answer.body.length;
}

function put(shelf: Shelf, name: string, kept: Kept, most: number): void {
  drop(shelf, name);
  shelf.kept.set(name, kept);
  shelf.bytes += kept.answer.body.length;
  for (const oldest of shelf.kept.keys()) {
    if (shelf.bytes <= most) break;
    drop(shelf, oldest);
  }
}

export default defineMiddleware({
  api: 1,
  name: "cache",
  summary: "Gives the same answer to the same request of the same key",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      lifetime_s: {
        type: "integer",
        minimum: 1,
        default: 300,
        description: "How long an answer is given again, in seconds",
      },
      max_mb: {
        type: "integer",
        minimum: 1,
        default: 64,
        description: "How much all kept answers may be, in megabytes",
      },
    },
  },
  setup({ lifetime_s, max_mb }, ctx) {
    const most = max_mb * 1024 * 1024;
    // It outlives a reload: the next generation's setup is handed the same shelf.
    const shelf = ctx.shared("shelf", (): Shelf => ({ kept: new Map(), bytes: 0, savedNano: 0n }));
    return {
      async attempt(call, next) {
        const x = call.exchange;
        if (x.privacy !== "off" || x.actionType !== "generate") return next();
        const name = nameOf(x);
        const found = shelf.kept.get(name);
        if (found && found.until > Date.now()) {
          x.setResponseHeader("x-cache", "hit");
          shelf.savedNano += found.costNano ?? 0n;
          return found.answer;
        }
        drop(shelf, name);
        x.setResponseHeader("x-cache", "miss");
        const reply = await next();
        // Not waited for: both are there when the client has all of the answer.
        void Promise.all([reply.recordResponse(Math.floor(most / 8)), reply.whenSettled()]).then(
          ([answer, { costNano }]) => {
            const until = Date.now() + lifetime_s * 1000;
            if (answer) put(shelf, name, { answer, costNano, until }, most);
          },
        );
        return reply;
      },
      commands: {
        size: {
          summary: "How many answers are kept, their bytes, and what they have saved",
          run: async () => ({
            answers: shelf.kept.size,
            bytes: shelf.bytes,
            saved_nano_usd: String(shelf.savedNano),
          }),
        },
      },
    };
  },
});
