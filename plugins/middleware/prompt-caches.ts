// Helps providers' prompt caches. It finds requests that change the part of a conversation that was
// sent before, because a provider cannot read that part from its cache. Optionally, it marks where
// a provider should cache a request.
import { randomBytes } from "node:crypto";
import {
  defineMiddleware,
  PROMPT_PLACE_LABEL,
  PROMPT_SECTION_LABEL,
  type Call,
  type Json,
  type Outgoing,
} from "tollgate/plugin";
import { ConversationPrefixes, type PrefixChange } from "./prompt-caches/conversation-prefixes.ts";
import { addBreakpoints } from "./prompt-caches/breakpoints.ts";
import { PrefixPlaces } from "./prompt-caches/prefix-places.ts";
import { promptSections } from "./prompt-caches/prompt-sections.ts";

export default defineMiddleware({
  api: 1,
  name: "prompt-caches",
  summary: "Find requests that miss prompt caches, and mark what to cache",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      breakpoints: {
        type: "boolean",
        default: false,
        description:
          "Whether requests in the format of Anthropic's Messages API get cache breakpoints on the " +
          "last tool, the last system block, and the last message. Breakpoints of the client are " +
          "never changed, and a request has at most 4",
      },
      compare: {
        type: "boolean",
        default: true,
        description:
          "Whether each request is compared with the previous one of its conversation. A changed " +
          "prefix is logged, and the ledger row gets the labels prompt_prefix and prompt_prefix_at. " +
          "Only hashes are kept, in memory",
      },
      conversations: {
        type: "integer",
        minimum: 1,
        maximum: 100_000,
        default: 1_000,
        description: "Maximum number of conversations whose hashes are kept",
      },
    },
  },
  setup({ breakpoints, compare, conversations }, ctx) {
    const prefixes = ctx.shared(
      `prefixes ${conversations}`,
      () => new ConversationPrefixes(conversations, randomBytes(4).readUInt32LE()),
    );
    const places = ctx.shared("places", () => new PrefixPlaces());
    return {
      prepare(out, call) {
        if (call.exchange.actionType !== "generate" || call.exchange.operation !== "chat") return;
        // Under privacy, nothing of the request is kept, and no reviewed field is added.
        if (call.exchange.privacy !== "off") return;
        if (compare) {
          const change = compareWithPrevious(prefixes, out, call);
          if (change) report(change, call);
        }
        if (breakpoints && call.protocol === "messages") addBreakpoints(out);
      },
    };

    function report(change: PrefixChange, call: Call): void {
      const { section, path, from, to, kept } = change;
      const place = places.placeOf(call.exchange.identity?.id ?? "", change, Date.now());
      try {
        call.exchange.addLabel(PROMPT_SECTION_LABEL, section);
        if (place !== undefined) call.exchange.addLabel(PROMPT_PLACE_LABEL, place);
      } catch {
        // The request has the maximum number of labels. A report must not end it.
      }
      ctx.log.info(
        { request: call.exchange.id, model: call.id, section, path, from, to, kept },
        "prompt prefix changed",
      );
    }
  },
});

/** Returns how the request differs from the start of the previous one of its conversation. */
function compareWithPrevious(
  prefixes: ConversationPrefixes,
  out: Outgoing,
  call: Call,
): PrefixChange | undefined {
  // Another attempt of a request repeats it.
  if (call.n > 1) return undefined;
  const sections = promptSections((field) => out.get(field) as Json | undefined);
  if (!sections) return undefined;
  const id = `${call.exchange.identity?.id} ${call.id} ${conversationOf(out, call, sections.first)}`;
  return prefixes.compare(id, sections);
}

/** Headers with the ID of a conversation. Each subagent of Claude Code has a separate conversation. */
const CONVERSATION_HEADERS = [
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "session-id",
  "session_id",
  "thread-id",
];

/** Returns the client's ID of the conversation. Without an ID, the first message identifies it. */
function conversationOf(out: Outgoing, call: Call, first: string): string {
  const { headers } = call.exchange;
  const ids = CONVERSATION_HEADERS.map((name) => headers[name]).filter(Boolean);
  const key = out.get("prompt_cache_key");
  if (typeof key === "string") ids.push(key);
  return ids.length > 0 ? ids.join(" ") : first;
}
