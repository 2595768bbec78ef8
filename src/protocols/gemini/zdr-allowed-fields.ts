// Lists the request fields that may be sent under zero data retention, from Google's documentation.
// Each member is listed once, by the name that the gateway sends. Plugins receive what the client
// wrote, in either spelling.
import type { FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";
import { allowBothSpellings } from "./normalize-field-names.ts";
import { ADDRESS_FIELDS } from "./constants.ts";

const BYTES: AllowedFields = {
  inlineData: valueFields("mimeType data"),
  fileData: valueFields("mimeType fileUri"),
};
const PART: AllowedFields = {
  ...BYTES,
  ...valueFields("text thought thoughtSignature mediaResolution"),
  videoMetadata: valueFields("startOffset endOffset fps"),
  functionCall: { ...valueFields("id name"), args: "free" },
  functionResponse: { ...valueFields("id name"), response: "free", parts: BYTES },
  ...freeTextFields("executableCode codeExecutionResult toolCall toolResponse"),
};
const CONTENT: AllowedFields = { role: "plain", parts: PART };

const BODY: FieldAllowlist = [
  ["model and response mode, from the URL path", valueFields(ADDRESS_FIELDS.join(" "))],
  ["conversation content", { contents: CONTENT, systemInstruction: CONTENT }],
  [
    "the client's own tools; hosted tools store their queries",
    {
      tools: {
        functionDeclarations: {
          ...valueFields("name description behavior"),
          ...freeTextFields("parameters parametersJsonSchema response responseJsonSchema"),
        },
      },
      toolConfig: {
        ...valueFields("includeServerSideToolInvocations"),
        functionCallingConfig: valueFields("mode allowedFunctionNames streamFunctionCallArguments"),
      },
    },
  ],
  [
    "parameters of a single response",
    {
      generationConfig: {
        ...valueFields(
          "temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty " +
            "responseLogprobs logprobs responseMimeType responseModalities mediaResolution",
        ),
        ...freeTextFields("responseSchema responseJsonSchema speechConfig"),
        thinkingConfig: valueFields("includeThoughts thinkingBudget thinkingLevel"),
        imageConfig: valueFields("aspectRatio imageSize"),
      },
      safetySettings: valueFields("category threshold"),
    },
  ],
  ["requests that nothing is stored; other values are rejected separately", valueFields("store")],
  ["processing priority, which stores nothing", valueFields("serviceTier")],
];

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = allowBothSpellings([
  ...BODY,
  [
    "the same request, for token counting",
    {
      generateContentRequest: Object.assign(
        {},
        ...BODY.map(([, fields]) => fields),
      ) as AllowedFields,
    },
  ],
]);
