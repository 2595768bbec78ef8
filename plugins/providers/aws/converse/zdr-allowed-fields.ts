// Request fields that may be sent under Service-ZDR: all fields that this codec writes, as AWS
// documents them.
import type { FieldAllowlist, AllowedFields } from "tollgate/plugin";
import { freeTextFields, valueFields } from "tollgate/protocols/references";

const SOURCE: AllowedFields = { source: valueFields("bytes") };
const MEDIA: AllowedFields = {
  image: { ...valueFields("format"), ...SOURCE },
  video: { ...valueFields("format"), ...SOURCE },
  audio: { ...valueFields("format"), ...SOURCE },
  document: { ...valueFields("format name context"), ...SOURCE, citations: valueFields("enabled") },
};
const BLOCK: AllowedFields = {
  ...valueFields("text"),
  ...MEDIA,
  reasoningContent: { reasoningText: valueFields("text signature"), redactedContent: "plain" },
  toolUse: { ...valueFields("toolUseId name"), input: "free" },
  toolResult: { ...valueFields("toolUseId status"), content: { ...valueFields("text"), ...MEDIA } },
  cachePoint: valueFields("type ttl"),
};
const CONVERSATION: AllowedFields = {
  messages: { role: "plain", content: BLOCK },
  system: { ...valueFields("text"), cachePoint: valueFields("type ttl") },
  toolConfig: {
    tools: {
      toolSpec: { ...valueFields("name description strict"), inputSchema: freeTextFields("json") },
      cachePoint: valueFields("type ttl"),
    },
    toolChoice: { auto: {}, any: {}, tool: valueFields("name") },
  },
};

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["conversation content, and the client's own tools", CONVERSATION],
  [
    "parameters of a single response",
    {
      inferenceConfig: valueFields("maxTokens temperature topP stopSequences"),
      outputConfig: {
        ...valueFields("effort"),
        textFormat: {
          ...valueFields("type"),
          structure: { jsonSchema: valueFields("schema name description") },
        },
      },
    },
  ],
  ["processing priority, which stores nothing", { serviceTier: valueFields("type") }],
  ["the same request, for token counting", { input: { converse: CONVERSATION } }],
];
