// What of a request may leave under Service-ZDR: read in Google's documentation. Each member stands here once, by the name under
// which we send it; a plugin is given what its client wrote, by either.
import type { Review, Reviewed } from "../../plugin/index.ts";
import { free, plain } from "../look/index.ts";
import { reviewedInBoth } from "./one-spelling.ts";
import { BESIDE } from "./words.ts";

const BYTES: Reviewed = { inlineData: plain("mimeType data"), fileData: plain("mimeType fileUri") };
const PART: Reviewed = {
  ...BYTES,
  ...plain("text thought thoughtSignature mediaResolution"),
  videoMetadata: plain("startOffset endOffset fps"),
  functionCall: { ...plain("id name"), args: "free" },
  functionResponse: { ...plain("id name"), response: "free", parts: BYTES },
  ...free("executableCode codeExecutionResult toolCall toolResponse"),
};
const CONTENT: Reviewed = { role: "plain", parts: PART };

const BODY: Review = [
  ["which model, and how its answer comes: the words of the path", plain(BESIDE.join(" "))],
  ["the conversation itself", { contents: CONTENT, systemInstruction: CONTENT }],
  [
    "the client's own tools; hosted ones keep what they look for",
    {
      tools: {
        functionDeclarations: {
          ...plain("name description behavior"),
          ...free("parameters parametersJsonSchema response responseJsonSchema"),
        },
      },
      toolConfig: {
        ...plain("includeServerSideToolInvocations"),
        functionCallingConfig: plain("mode allowedFunctionNames streamFunctionCallArguments"),
      },
    },
  ],
  [
    "steers one answer and is gone with it",
    {
      generationConfig: {
        ...plain(
          "temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty " +
            "responseLogprobs logprobs responseMimeType responseModalities mediaResolution",
        ),
        ...free("responseSchema responseJsonSchema speechConfig"),
        thinkingConfig: plain("includeThoughts thinkingBudget thinkingLevel"),
        imageConfig: plain("aspectRatio imageSize"),
      },
      safetySettings: plain("category threshold"),
    },
  ],
  ["asks that nothing be kept; the opposite is refused by itself", plain("store")],
  ["how it is ranked, which keeps nothing", plain("serviceTier")],
];

export const REVIEWED: Review = reviewedInBoth([
  ...BODY,
  [
    "the same, to be counted",
    { generateContentRequest: Object.assign({}, ...BODY.map(([, fields]) => fields)) as Reviewed },
  ],
]);
