// Known fields of a request body below the top level. Members that only this protocol has are not
// listed. They are carried in `ext` by their path.
import { valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";

const BYTES: KnownFields = {
  inlineData: valueFields("mimeType data"),
  fileData: valueFields("mimeType fileUri"),
};

const READ = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];

const RESPONDED: KnownFields = { ...valueFields("id name response"), parts: BYTES };

/** A part without any known content is opaque: it is sent as a whole or not at all. */
const PART: FieldShape = (part) =>
  READ.some((kind) => part[kind] !== undefined)
    ? {
        ...valueFields("text thought thoughtSignature"),
        ...BYTES,
        functionCall: valueFields("id name args"),
        functionResponse: RESPONDED,
      }
    : null;

export const KNOWN_INSIDE: KnownFields = {
  contents: { role: null, parts: PART },
  systemInstruction: { role: null, parts: PART },
  // Each hosted tool is one member and is sent as a whole. Of a search, other protocols receive
  // only that it is requested, so all its members count as unknown.
  tools: (tool) => ({
    ...valueFields(Object.keys(tool).join(" ")),
    googleSearch: {},
    googleSearchRetrieval: {},
    functionDeclarations: valueFields("name description parameters parametersJsonSchema"),
  }),
  toolConfig: { functionCallingConfig: valueFields("mode allowedFunctionNames") },
  generationConfig: {
    ...valueFields(
      "temperature topP topK maxOutputTokens stopSequences candidateCount seed logprobs",
    ),
    ...valueFields("presencePenalty frequencyPenalty responseLogprobs responseModalities"),
    ...valueFields("responseMimeType responseSchema responseJsonSchema"),
    thinkingConfig: valueFields("includeThoughts thinkingBudget thinkingLevel"),
  },
};
