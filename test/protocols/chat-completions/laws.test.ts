// The laws that hold for every protocol, over this one's recordings.
import { test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import type { Protocol } from "../../../src/plugin/index.ts";
import { protocolChecks } from "../../../src/testing/index.ts";

const folder = (name: string) => new URL(`../../fixtures/recordings/${name}/`, import.meta.url);

// Everything that some backend of this wire can be told, so that nothing is lost on the way.
const everything = chatCompletions({
  topK: true,
  mediaUrls: true,
  toolImages: true,
  webSearch: true,
  cacheMarks: "cache_control",
  reasoning: { echo: "reasoning_details" },
});
const tags = chatCompletions({ thinkTags: true, reasoningNotInOutput: true });

/** The host sets what no codec knows; so must a judge without one. */
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
    // What a relay passes on keeps its tags: they are the client's to read.
    ({ name }) => !name.includes("passthrough and translation give the same result"),
  ),
])
  test(name, run);
