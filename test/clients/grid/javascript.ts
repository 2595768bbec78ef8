// Each operation, requested with OpenAI's and Vercel's SDKs.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAI } from "@ai-sdk/openai";
import {
  embedMany,
  generateImage,
  generateSpeech,
  generateText,
  streamText,
  transcribe,
  type ModelMessage,
} from "ai";
import OpenAI from "openai";
import { PNG } from "../../rig/money/vendor-formats.ts";
import { WIRES, type Asked, type Operation } from "./stage.ts";

const js = ({ url, key }: Asked) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const given = ({ headers, signal }: Asked) => ({ headers, ...(signal && { signal }) });
const events = async (stream: AsyncIterable<unknown>) => {
  for await (const _ of stream);
};
const sound = (words: string) => new File([words.padEnd(31 * 750)], "a.wav");
const picture = () => Buffer.from(PNG, "base64");
const one = () => new File([picture()], "one.png", { type: "image/png" });

const ai = ({ url, key }: Asked) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
const likewise = ({ url, key }: Asked) =>
  createOpenAICompatible({ name: "team", baseURL: `${url}/v1`, apiKey: key });
const once = ({ headers, signal }: Asked) => ({
  maxRetries: 0,
  headers,
  ...(signal && { abortSignal: signal }),
});
const talk = (prompt: string): ModelMessage[] => [{ role: "user", content: prompt }];
async function flowing(asked: ReturnType<typeof streamText>) {
  for await (const part of asked.fullStream) if (part.type === "error") throw part.error;
  // A canceled response simply ends.
  if ((await asked.finishReason) === "error") throw new Error("it ended in an error");
}

export const JAVASCRIPT: { readonly [name: string]: Operation } = {
  chat: {
    models: WIRES.chat,
    ways: {
      "openai js, whole": (of) =>
        js(of).chat.completions.create(
          { model: of.model, messages: [{ role: "user", content: of.prompt }] },
          given(of),
        ),
      "openai js, streamed": async (of) =>
        events(
          await js(of).chat.completions.create(
            { model: of.model, stream: true, messages: [{ role: "user", content: of.prompt }] },
            given(of),
          ),
        ),
      "AI SDK, whole": (of) =>
        generateText({ model: ai(of).chat(of.model), messages: talk(of.prompt), ...once(of) }),
      "AI SDK, streamed": (of) =>
        flowing(
          streamText({
            model: ai(of).chat(of.model),
            messages: talk(of.prompt),
            onError() {},
            ...once(of),
          }),
        ),
    },
  },
  completions: {
    models: WIRES.completions,
    ways: {
      "openai js, whole": (of) =>
        js(of).completions.create({ model: of.model, prompt: of.prompt }, given(of)),
      "openai js, streamed": async (of) =>
        events(
          await js(of).completions.create(
            { model: of.model, prompt: of.prompt, stream: true },
            given(of),
          ),
        ),
      "AI SDK, whole": (of) =>
        generateText({
          model: likewise(of).completionModel(of.model),
          prompt: of.prompt,
          ...once(of),
        }),
      "AI SDK, streamed": (of) =>
        flowing(
          streamText({
            model: likewise(of).completionModel(of.model),
            prompt: of.prompt,
            onError() {},
            ...once(of),
          }),
        ),
    },
  },
  embeddings: {
    models: WIRES.embeddings,
    ways: {
      "openai js": (of) =>
        js(of).embeddings.create({ model: of.model, input: of.prompt }, given(of)),
      "AI SDK": (of) =>
        embedMany({ model: ai(of).embedding(of.model), values: [of.prompt], ...once(of) }),
    },
  },
  rerank: {
    models: WIRES.rerank,
    ways: {
      // This SDK has no method for it.
      "openai js": (of) =>
        js(of).post("/rerank", {
          body: { model: of.model, query: of.prompt, documents: ["one", "two"] },
          ...given(of),
        }),
    },
  },
  moderations: {
    models: WIRES.moderations,
    ways: {
      "openai js": (of) =>
        js(of).moderations.create({ model: of.model, input: of.prompt }, given(of)),
    },
  },
  speech: {
    models: WIRES.speech,
    ways: {
      "openai js": async (of) =>
        (
          await js(of).audio.speech.create(
            { model: of.model, input: of.prompt, voice: "alloy" },
            given(of),
          )
        ).arrayBuffer(),
      "openai js, in events": async (of) =>
        (
          await js(of).audio.speech.create(
            { model: of.model, input: of.prompt, voice: "alloy", stream_format: "sse" },
            given(of),
          )
        ).text(),
      "AI SDK": (of) =>
        generateSpeech({
          model: ai(of).speech(of.model),
          text: of.prompt,
          voice: "alloy",
          ...once(of),
        }),
    },
  },
  transcriptions: {
    models: WIRES.transcriptions,
    ways: {
      "openai js": (of) =>
        js(of).audio.transcriptions.create({ model: of.model, file: sound(of.prompt) }, given(of)),
      "openai js, streamed": async (of) =>
        events(
          await js(of).audio.transcriptions.create(
            { model: of.model, file: sound(of.prompt), stream: true },
            given(of),
          ),
        ),
      "AI SDK": async (of) =>
        transcribe({
          model: ai(of).transcription(of.model),
          audio: new Uint8Array(await sound(of.prompt).arrayBuffer()),
          ...once(of),
        }),
    },
  },
  generations: {
    models: WIRES.generations,
    ways: {
      "openai js": (of) =>
        js(of).images.generate(
          { model: of.model, prompt: of.prompt, response_format: "b64_json" },
          given(of),
        ),
      "openai js, streamed": async (of) =>
        events(
          await js(of).images.generate(
            { model: of.model, prompt: of.prompt, stream: true },
            given(of),
          ),
        ),
      "AI SDK": (of) =>
        generateImage({ model: likewise(of).imageModel(of.model), prompt: of.prompt, ...once(of) }),
    },
  },
  edits: {
    models: WIRES.edits,
    ways: {
      "openai js": (of) =>
        js(of).images.edit(
          {
            model: of.model,
            prompt: of.prompt,
            image: one(),
          },
          given(of),
        ),
      "openai js, streamed": async (of) =>
        events(
          await js(of).images.edit(
            { model: of.model, prompt: of.prompt, image: one(), stream: true },
            given(of),
          ),
        ),
      "AI SDK": (of) =>
        generateImage({
          model: likewise(of).imageModel(of.model),
          prompt: { text: of.prompt, images: [picture()] },
          ...once(of),
        }),
    },
  },
};
