// Google's JavaScript clients, each with the same tasks in its own API.
import type { Four } from "../four.ts";
import { CHECK } from "../four.ts";
import { installed, type Package } from "../install.ts";

export const WEATHER = "What is the weather like?";
export const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
} as const;
const rain = ({ city }: { city: string }): string => `Rain in ${city}.`;

/** A client's view of a response. */
export interface Heard {
  readonly text: string;
  /** Total input and output, if reported. */
  readonly counts?: { readonly input: number; readonly output: number };
}

export interface Asking {
  readonly at: Pick<Four, "url" | "key">;
  readonly model: string;
  /** Names of its calls in the ledger. */
  readonly check: string;
}

/** A client's tasks: each sends one request, or as many as tools cause. */
export interface GoogleClient {
  readonly name: string;
  readonly package: Package;
  /** It supports neither reasoning nor other models than Google's. */
  readonly older?: boolean;
  load(script: string): Promise<Loaded>;
}

export interface Loaded {
  say(of: Asking, words: string, more?: { picture?: Buffer }): Promise<Heard>;
  stream(of: Asking, words: string): Promise<Heard>;
  schema(of: Asking, words: string): Promise<unknown>;
  /** Reasoning next to the response, if supported. */
  thoughts?(of: Asking, words: string): Promise<{ thought: string; text: string }>;
  /** Two streaming turns of a chat, and the number of contents in its history. */
  chat?(of: Asking, words: string): Promise<{ texts: readonly string[]; kept: number }>;
  /** For several texts, and for the first of them only. */
  vectors(of: Asking, texts: readonly string[]): Promise<Vectors>;
  /** Until no tool is called, at most three turns. */
  tools(of: Asking, stream: boolean): Promise<Heard>;
}

export interface Vectors {
  readonly several: readonly (readonly number[])[];
  readonly one: readonly number[];
}

// These packages are not installed during type checks.
type Any = any; // oxlint-disable-line typescript/no-explicit-any
const load = (script: string): Promise<Any> => import(script);
const headers = ({ check }: Asking) => ({ [CHECK]: check });

const countsIn = (usage: Any) => ({
  input: usage?.promptTokenCount ?? 0,
  output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
});

const parts = (words: string, picture?: Buffer): Any[] => [
  { text: words },
  ...(picture ? [{ inlineData: { mimeType: "image/png", data: picture.toString("base64") } }] : []),
];

const DECLARED = [
  {
    functionDeclarations: [
      { name: "get_weather", description: "The weather in a city", parameters: SCHEMA },
    ],
  },
];

const answersTo = (calls: readonly Any[], withIds: boolean): Any[] =>
  calls.map(({ id, name, args }) => ({
    functionResponse: { ...(withIds && id && { id }), name, response: { output: rain(args) } },
  }));

const genai: GoogleClient = {
  name: "genai",
  package: { name: "@google/genai", version: "3.3.0", main: "dist/node/index.mjs" },
  async load(script) {
    const { GoogleGenAI } = await load(script);
    const models = (of: Asking) =>
      new GoogleGenAI({
        apiKey: of.at.key,
        httpOptions: { baseUrl: of.at.url, headers: headers(of) },
      }).models;
    const asked = (of: Asking, contents: Any, config: object = {}) => ({
      model: of.model,
      contents,
      config,
    });
    return {
      async say(of, words, { picture } = {}) {
        const contents = [{ role: "user", parts: parts(words, picture) }];
        const answer = await models(of).generateContent(asked(of, contents));
        return { text: answer.text, counts: countsIn(answer.usageMetadata) };
      },
      async stream(of, words) {
        let text = "";
        let usage: Any;
        for await (const chunk of await models(of).generateContentStream(asked(of, words))) {
          text += chunk.text ?? "";
          usage = chunk.usageMetadata ?? usage;
        }
        return { text, counts: countsIn(usage) };
      },
      async chat(of, words) {
        const httpOptions = { baseUrl: of.at.url, headers: headers(of) };
        const ai = new GoogleGenAI({ apiKey: of.at.key, httpOptions });
        const chat = ai.chats.create({ model: of.model });
        const texts: string[] = [];
        for (let turn = 0; turn < 2; turn++) {
          let text = "";
          for await (const chunk of await chat.sendMessageStream({ message: words }))
            text += chunk.text ?? "";
          texts.push(text);
        }
        const said = chat.getHistory(true).filter(({ role }: Any) => role === "user");
        return { texts, kept: said.length };
      },
      async schema(of, words) {
        const config = { responseMimeType: "application/json", responseJsonSchema: SCHEMA };
        return JSON.parse((await models(of).generateContent(asked(of, words, config))).text);
      },
      async thoughts(of, words) {
        const config = { thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" } };
        const answer = await models(of).generateContent(asked(of, words, config));
        const told = answer.candidates[0].content.parts;
        const thought = told.map((part: Any) => (part.thought ? (part.text ?? "") : "")).join("");
        return { thought, text: answer.text };
      },
      async vectors(of, texts) {
        const values = async (contents: Any) => {
          const { embeddings } = await models(of).embedContent(asked(of, contents));
          return embeddings.map(({ values }: Any) => values);
        };
        return { several: await values(texts), one: (await values(texts[0]))[0] };
      },
      async tools(of, stream) {
        const contents: Any[] = [{ role: "user", parts: parts(WEATHER) }];
        for (let turn = 0; turn < 3; turn++) {
          const request = asked(of, contents, { tools: DECLARED });
          const said: Any[] = [];
          if (stream)
            for await (const chunk of await models(of).generateContentStream(request))
              said.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
          else
            said.push(...(await models(of).generateContent(request)).candidates[0].content.parts);
          // In the form of its own chats.
          const kept = said.filter((part) => part.text !== "" || part.thoughtSignature);
          contents.push({ role: "model", parts: kept });
          const calls = said.flatMap(({ functionCall }) => functionCall ?? []);
          if (calls.length === 0) return { text: said.map(({ text }) => text ?? "").join("") };
          contents.push({ role: "user", parts: answersTo(calls, true) });
        }
        throw new Error("It calls and calls.");
      },
    };
  },
};

const older: GoogleClient = {
  name: "generative-ai",
  older: true,
  package: { name: "@google/generative-ai", version: "0.24.1", main: "dist/index.mjs" },
  async load(script) {
    const { GoogleGenerativeAI } = await load(script);
    const model = (of: Asking, config: object = {}) =>
      new GoogleGenerativeAI(of.at.key).getGenerativeModel(
        { model: of.model, ...config },
        { baseUrl: of.at.url, customHeaders: headers(of) },
      );
    return {
      async say(of, words, { picture } = {}) {
        const { response } = await model(of).generateContent(parts(words, picture));
        return { text: response.text(), counts: countsIn(response.usageMetadata) };
      },
      async stream(of, words) {
        const { stream, response } = await model(of).generateContentStream(words);
        // It fails next to the stream, and again by itself.
        response.catch(() => {});
        let text = "";
        for await (const chunk of stream) text += chunk.text();
        return { text, counts: countsIn((await response).usageMetadata) };
      },
      async schema(of, words) {
        const generationConfig = { responseMimeType: "application/json", responseSchema: SCHEMA };
        const { response } = await model(of, { generationConfig }).generateContent(words);
        return JSON.parse(response.text());
      },
      async vectors(of, texts) {
        const requests = texts.map((text) => ({ content: { role: "user", parts: parts(text) } }));
        const { embeddings } = await model(of).batchEmbedContents({ requests });
        const { embedding } = await model(of).embedContent(texts[0]);
        return { several: embeddings.map(({ values }: Any) => values), one: embedding.values };
      },
      async tools(of, stream) {
        const chat = model(of, { tools: DECLARED }).startChat();
        let next: Any = WEATHER;
        for (let turn = 0; turn < 3; turn++) {
          const { response } = stream
            ? await drained(await chat.sendMessageStream(next))
            : await chat.sendMessage(next);
          const calls = (await response).functionCalls();
          if (!calls?.length) return { text: (await response).text() };
          next = answersTo(calls, false);
        }
        throw new Error("It calls and calls.");
      },
    };
  },
};

async function drained<T extends { stream: AsyncIterable<unknown> }>(told: T): Promise<T> {
  for await (const _ of told.stream);
  return told;
}

const aiSdk: GoogleClient = {
  name: "ai-sdk",
  package: { name: "@ai-sdk/google", version: "4.0.121", main: "dist/index.js" },
  async load(script) {
    const { createGoogleGenerativeAI } = await load(script);
    const { embed, embedMany, generateText, streamText, jsonSchema, tool, Output, isStepCount } =
      await import("ai");
    const google = (of: Asking) =>
      createGoogleGenerativeAI({
        apiKey: of.at.key,
        baseURL: `${of.at.url}/v1beta`,
        headers: headers(of),
      });
    const model = (of: Asking) => google(of)(of.model);
    const heard = ({ text, usage }: Any): Heard => ({
      text,
      counts: { input: usage.inputTokens, output: usage.outputTokens },
    });
    return {
      say: async (of, words, { picture } = {}) =>
        heard(
          await generateText({
            model: model(of),
            maxRetries: 0,
            messages: [
              {
                role: "user",
                content: [
                  { type: "text", text: words },
                  ...(picture
                    ? [{ type: "file" as const, data: picture, mediaType: "image/png" }]
                    : []),
                ],
              },
            ],
          }),
        ),
      async stream(of, words) {
        let failed: unknown;
        const told = streamText({
          model: model(of),
          prompt: words,
          maxRetries: 0,
          onError: ({ error }) => void (failed = error),
        });
        let text = "";
        for await (const piece of told.textStream) text += piece;
        if (failed) throw failed;
        return heard({ text, usage: await told.usage });
      },
      schema: async (of, words) =>
        (
          await generateText({
            model: model(of),
            prompt: words,
            maxRetries: 0,
            output: Output.object({ schema: jsonSchema(SCHEMA) }),
          })
        ).output,
      async thoughts(of, words) {
        const thinkingConfig = { includeThoughts: true, thinkingLevel: "high" };
        const told = await generateText({
          model: model(of),
          prompt: words,
          maxRetries: 0,
          providerOptions: { google: { thinkingConfig } },
        });
        return { thought: told.reasoningText ?? "", text: told.text };
      },
      async vectors(of, texts) {
        const asked = { model: google(of).embeddingModel(of.model), maxRetries: 0 };
        const { embeddings } = await embedMany({ ...asked, values: [...texts] });
        return {
          several: embeddings,
          one: (await embed({ ...asked, value: texts[0]! })).embedding,
        };
      },
      async tools(of, stream) {
        const asked = {
          model: model(of),
          prompt: WEATHER,
          maxRetries: 0,
          stopWhen: isStepCount(3),
          tools: {
            get_weather: tool({
              inputSchema: jsonSchema<{ city: string }>(SCHEMA),
              execute: async (place) => rain(place),
            }),
          },
        };
        if (!stream) return { text: (await generateText(asked)).text };
        const told = streamText(asked);
        await told.consumeStream();
        return { text: await told.text };
      },
    };
  },
};

const langchain: GoogleClient = {
  name: "langchain",
  older: true,
  package: { name: "@langchain/google-genai", version: "2.3.2", main: "dist/index.js" },
  async load(script) {
    const { ChatGoogleGenerativeAI, GoogleGenerativeAIEmbeddings } = await load(script);
    const chat = (of: Asking, more: object = {}) =>
      new ChatGoogleGenerativeAI({
        model: of.model,
        apiKey: of.at.key,
        baseUrl: of.at.url,
        maxRetries: 0,
        customHeaders: headers(of),
        ...more,
      });
    const heard = ({ content }: Any): Heard => ({
      text:
        typeof content === "string"
          ? content
          : content.map((part: Any) => (part.type === "text" ? part.text : "")).join(""),
    });
    return {
      async say(of, words, { picture } = {}) {
        const url = picture && `data:image/png;base64,${picture.toString("base64")}`;
        const content = [
          { type: "text", text: words },
          ...(url ? [{ type: "image_url", image_url: url }] : []),
        ];
        return heard(await chat(of).invoke([{ role: "user", content }]));
      },
      async stream(of, words) {
        let all: Any;
        for await (const chunk of await chat(of).stream(words))
          all = all ? all.concat(chunk) : chunk;
        return { text: heard(all).text };
      },
      schema: (of, words) =>
        chat(of).withStructuredOutput(SCHEMA, { method: "jsonSchema" }).invoke(words),
      async vectors({ at, model }, texts) {
        const embeddings = new GoogleGenerativeAIEmbeddings({
          model,
          apiKey: at.key,
          baseUrl: at.url,
          maxRetries: 0,
        });
        return {
          several: await embeddings.embedDocuments([...texts]),
          one: await embeddings.embedQuery(texts[0]),
        };
      },
      async tools(of, stream) {
        const bound = chat(of).bindTools(DECLARED);
        const turns: Any[] = [{ role: "user", content: WEATHER }];
        for (let turn = 0; turn < 3; turn++) {
          let answer: Any;
          if (stream)
            for await (const chunk of await bound.stream(turns))
              answer = answer ? answer.concat(chunk) : chunk;
          else answer = await bound.invoke(turns);
          if (!answer.tool_calls?.length) return { text: heard(answer).text };
          turns.push(answer);
          for (const { id, name, args } of answer.tool_calls)
            turns.push({ role: "tool", tool_call_id: id ?? name, name, content: rain(args) });
        }
        throw new Error("It calls and calls.");
      },
    };
  },
};

export const SDKS: readonly GoogleClient[] = [genai, older, aiSdk, langchain];

export const ready = async (client: GoogleClient): Promise<Loaded> =>
  client.load(await installed(client.package));
