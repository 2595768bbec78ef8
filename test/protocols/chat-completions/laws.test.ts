// The rules for every protocol, with this one's recordings.
import { test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import type { Protocol } from "../../../src/plugin/index.ts";
import { protocolChecks } from "../../../src/testing/index.ts";

const folder = (name: string) => new URL(`../../fixtures/recordings/${name}/`, import.meta.url);

// Everything that some backend of this protocol supports, so that nothing is lost.
const everything = chatCompletions({
  topK: true,
  mediaUrls: true,
  toolImages: true,
  webSearch: true,
  cacheMarks: "cache_control",
  reasoning: { echo: "reasoning_details" },
});
const tags = chatCompletions({ thinkTags: true, reasoningNotInOutput: true });

/** The host sets unknown fields, and so must a test without one. */
const hosted = (p: Protocol<"chat">): Protocol<"chat"> => ({
  ...p,
  client: {
    ...p.client!,
    encodeRequest: (r, of) => ({ ...p.client!.encodeRequest(r, of), ...r.rest }),
  },
});

for (const { name, run } of [
  ...protocolChecks(hosted(everything), { recordings: folder("chat-completions"), trials: 20 }),
  ...protocolChecks(tags, { recordings: folder("chat-completions-tags"), trials: 20 }).filter(
    // Forwarded text keeps its tags, which the client interprets.
    ({ name }) => !name.includes("passthrough and translation give the same result"),
  ),
])
  test(name, run);
