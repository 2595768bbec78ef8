// What of a request may leave under Service-ZDR: all that this codec writes, as AWS documents it.
import type { Review, Reviewed } from "tollgate/plugin";
import { free, plain } from "tollgate/protocols/look";

const SOURCE: Reviewed = { source: plain("bytes") };
const MEDIA: Reviewed = {
  image: { ...plain("format"), ...SOURCE },
  video: { ...plain("format"), ...SOURCE },
  audio: { ...plain("format"), ...SOURCE },
  document: { ...plain("format name context"), ...SOURCE, citations: plain("enabled") },
};
const BLOCK: Reviewed = {
  ...plain("text"),
  ...MEDIA,
  reasoningContent: { reasoningText: plain("text signature"), redactedContent: "plain" },
  toolUse: { ...plain("toolUseId name"), input: "free" },
  toolResult: { ...plain("toolUseId status"), content: { ...plain("text"), ...MEDIA } },
  cachePoint: plain("type ttl"),
};
const CONVERSATION: Reviewed = {
  messages: { role: "plain", content: BLOCK },
  system: { ...plain("text"), cachePoint: plain("type ttl") },
  toolConfig: {
    tools: {
      toolSpec: { ...plain("name description strict"), inputSchema: free("json") },
      cachePoint: plain("type ttl"),
    },
    toolChoice: { auto: {}, any: {}, tool: plain("name") },
  },
};

export const REVIEWED: Review = [
  ["the conversation itself, and the client's own tools", CONVERSATION],
  [
    "steers one answer and is gone with it",
    {
      inferenceConfig: plain("maxTokens temperature topP stopSequences"),
      outputConfig: {
        ...plain("effort"),
        textFormat: {
          ...plain("type"),
          structure: { jsonSchema: plain("schema name description") },
        },
      },
    },
  ],
  ["how it is ranked, which keeps nothing", { serviceTier: plain("type") }],
  ["the same, to be counted", { input: { converse: CONVERSATION } }],
];
