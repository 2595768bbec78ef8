// Fields of a Gemini request: rows of docs/reference/translation/requests.md.
import { fromClients, type Row } from "../tables/verdicts.ts";

const user = (...parts: object[]) => ({ role: "user", parts });
const model = (...parts: object[]) => ({ role: "model", parts });
const ask = { text: "?" };
const said = (part: object): object => ({ contents: [user(part, ask)] });
const done = (part: object): object => ({ contents: [user(ask), model(part, ask), user(ask)] });
const call = { functionCall: { id: "c", name: "f", args: {} } };
const answered = (more: object): object => ({
  contents: [user(ask), model(call), user({ functionResponse: { id: "c", name: "f", ...more } })],
});
const config = (generationConfig: object): object => ({ generationConfig });
const thinking = (thinkingConfig: object): object => config({ thinkingConfig });
const f = {
  name: "f",
  parametersJsonSchema: { type: "object", properties: { a: { type: "string" } } },
};
const tools = (...functionDeclarations: object[]): object => ({
  tools: [{ functionDeclarations }],
});
const calling = (functionCallingConfig: object): object => ({
  ...tools(f),
  toolConfig: { functionCallingConfig },
});
const png = { mimeType: "image/png", data: "iVBORw0KGgo=" };
const JSON_ = "application/json";

/** In the form of a gemini client. */
const OWN: readonly Row<object>[] = [
  ["temperature", config({ temperature: 0.5 })],
  ["topK", config({ topK: 5 })],
  ["stopSequences", config({ stopSequences: ["END"] })],
  ["seed", config({ seed: 1 })],
  ["candidateCount", config({ candidateCount: 2 })],
  ["responseLogprobs", config({ responseLogprobs: true, logprobs: 2 })],
  ["presencePenalty", config({ presencePenalty: 1 })],
  ["systemInstruction", { systemInstruction: { parts: [{ text: "x" }] } }],
  ["system_instruction", { system_instruction: { parts: { text: "x" } } }],
  ["thinkingLevel", thinking({ thinkingLevel: "HIGH", includeThoughts: true })],
  ["thinkingLevel, reasoning hidden", thinking({ thinkingLevel: "HIGH" })],
  ["thinkingBudget", thinking({ thinkingBudget: 2000, includeThoughts: true })],
  ["thinkingBudget: 0", thinking({ thinkingBudget: 0 })],
  ["includeThoughts", thinking({ includeThoughts: true })],
  ["responseMimeType: JSON", config({ responseMimeType: JSON_ })],
  [
    "responseJsonSchema",
    config({ responseMimeType: JSON_, responseJsonSchema: { type: "object" } }),
  ],
  ["responseSchema", config({ responseMimeType: JSON_, responseSchema: { type: "OBJECT" } })],
  ["responseMimeType: enum", config({ responseMimeType: "text/x.enum" })],
  ["responseModalities: AUDIO", config({ responseModalities: ["AUDIO"] })],
  ["mediaResolution, speechConfig, …", config({ mediaResolution: "MEDIA_RESOLUTION_LOW" })],
  ["safetySettings", { safetySettings: [{ category: "c", threshold: "OFF" }] }],
  ["labels", { labels: { a: "b" } }],
  ["serviceTier: flex", { serviceTier: "flex" }],
  ["serviceTier: standard", { serviceTier: "standard" }],
  ["cachedContent", { cachedContent: "cachedContents/x" }],
  ["unknown top-level fields", { brand_new: 1 }],
  ["unknown fields of nested objects", config({ newer: 1 }), config({})],
  ["functionDeclarations", tools(f)],
  [
    "functionDeclarations: OpenAPI",
    tools({ name: "f", parameters: { type: "OBJECT", properties: { a: { type: "STRING" } } } }),
  ],
  ["functionDeclarations: behavior, …", tools({ ...f, behavior: "BLOCKING" }), tools(f)],
  ["googleSearch", { tools: [{ googleSearch: {} }] }],
  ["codeExecution, urlContext, …", { tools: [{ codeExecution: {} }] }],
  ["mode: ANY", calling({ mode: "ANY" }), tools(f)],
  [
    "mode: ANY, with allowed functions",
    calling({ mode: "ANY", allowedFunctionNames: ["f"] }),
    tools(f),
  ],
  ["mode: VALIDATED", calling({ mode: "VALIDATED" }), tools(f)],
  ["inlineData: image", said({ inlineData: png })],
  ["inlineData: PDF", said({ inlineData: { mimeType: "application/pdf", data: "AA==" } })],
  ["inlineData: audio", said({ inlineData: { mimeType: "audio/wav", data: "AA==" } })],
  ["fileData: URL", said({ fileData: { mimeType: "image/png", fileUri: "https://e/a.png" } })],
  ["fileData: uploaded file", said({ fileData: { mimeType: "image/png", fileUri: "files/x" } })],
  [
    "videoMetadata",
    said({ inlineData: png, videoMetadata: { fps: 1 } }),
    said({ inlineData: png }),
  ],
  ["functionCall and functionResponse", answered({ response: { output: "x" } })],
  ["functionResponse: error", answered({ response: { error: "x" } })],
  ["functionResponse: other object", answered({ response: { a: 1, b: [2] } })],
  [
    "functionResponse: image",
    answered({ response: { output: "x" }, parts: [{ inlineData: png }] }),
  ],
  ["thought", done({ text: "x", thought: true })],
  ["thoughtSignature on a call", done({ ...call, thoughtSignature: "cw==" }), done(call)],
  ["thoughtSignature on text", done({ text: "x", thoughtSignature: "cw==" }), done({ text: "x" })],
  ["executableCode and results", done({ executableCode: { language: "PYTHON", code: "1" } })],
];

/** The same without the field in question. */
const bare = (body: { contents?: any }): object =>
  body.contents
    ? {
        contents: (body.contents as readonly { role: string; parts: any[] }[]).flatMap(
          ({ role, parts }) => {
            const left = parts.filter((part) => "text" in part && !part.thought);
            return left.length > 0 ? [{ role, parts: left }] : [];
          },
        ),
      }
    : {};

const LEAST = { model: "m", contents: [user(ask)] };

/** Every row as a separate body. */
export const bodies: readonly object[] = OWN.map(([, more]) => ({ ...LEAST, ...more }));

export const table = (): string =>
  fromClients(
    "gemini",
    LEAST,
    OWN.map(([name, more, plain]): Row<object> => [name, more, plain ?? bare(more)]),
  );
