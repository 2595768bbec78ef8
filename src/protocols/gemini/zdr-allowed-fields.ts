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
  [
    "which model, and how its answer comes: the words of the path",
    valueFields(ADDRESS_FIELDS.join(" ")),
  ],
  ["the conversation itself", { contents: CONTENT, systemInstruction: CONTENT }],
  [
    "the client's own tools; hosted ones keep what they look for",
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
    "steers one answer and is gone with it",
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
  ["asks that nothing be kept; the opposite is refused by itself", valueFields("store")],
  ["how it is ranked, which keeps nothing", valueFields("serviceTier")],
];

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = allowBothSpellings([
  ...BODY,
  [
    "the same, to be counted",
    {
      generateContentRequest: Object.assign(
        {},
        ...BODY.map(([, fields]) => fields),
      ) as AllowedFields,
    },
  ],
]);
