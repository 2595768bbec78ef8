// What a client's body is known to say below the top. A member that only this wire has stands in no line: it rides along by its path.
import { valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";

const BYTES: KnownFields = {
  inlineData: valueFields("mimeType data"),
  fileData: valueFields("mimeType fileUri"),
};

const READ = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];

const RESPONDED: KnownFields = { ...valueFields("id name response"), parts: BYTES };

/** A part that is none of those that are read is opaque, and goes as a whole or not at all. */
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
  // Each hosted tool is a member by itself, and goes as a whole; of a search others are told no more than that it is one.
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
