// Official clients of sockets, each holding the same conversation: a turn of text, then a turn of speech.
import { execFile } from "node:child_process";
import { connect } from "node:net";
import { Agent } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { installed, type Package } from "../install.ts";
import { python } from "../python/venv.ts";
import { silence, speech } from "../../kit/sockets/realtime-upstream.ts";

export interface Place {
  /** Base URL of the server, without a path. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
}

/** What a client made of the conversation. */
export interface Heard {
  /** Text of each response, as the client put it together. */
  readonly texts: readonly string[];
  /** Milliseconds or bytes of audio, by response, if the client reports audio. */
  readonly audioBytes: readonly number[];
  /** Tokens that the client counted, in and out, over all responses. */
  readonly input: number;
  readonly output: number;
  readonly errors: readonly string[];
}

export interface SocketClient {
  readonly name: string;
  readonly protocol: "realtime" | "gemini-live";
  /** Package to install. Undefined: it comes with the checkout. */
  readonly package?: Package;
  talk(at: Place, script: string): Promise<Heard>;
}

// These packages are not there when types are checked.
type Any = any; // oxlint-disable-line typescript/no-explicit-any

/** Waits until `ready` returns true. */
async function waitFor(ready: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 30_000;
  while (!ready()) {
    if (performance.now() > end) throw new Error(`no ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The official client insists on TLS. This agent speaks plain TCP under it. */
class PlainAgent extends Agent {
  readonly #port: number;
  constructor(url: string) {
    super();
    this.#port = Number(new URL(url).port);
  }
  override createConnection(): ReturnType<typeof connect> {
    return connect(this.#port, "127.0.0.1");
  }
}

const openaiJs: SocketClient = {
  name: "openai (JavaScript)",
  protocol: "realtime",
  async talk({ url, key, model }) {
    const client = new OpenAI({ apiKey: key, baseURL: `${url.replace("http:", "https:")}/v1` });
    const rt = new OpenAIRealtimeWS({ model, options: { agent: new PlainAgent(url) } }, client);
    const texts: string[] = [];
    const audioBytes: number[] = [];
    const errors: string[] = [];
    let [bytes, input, output] = [0, 0, 0];
    rt.on("error", (error) => errors.push(error.message));
    rt.on("response.output_audio.delta", ({ delta }) => {
      bytes += Buffer.from(delta, "base64").length;
    });
    rt.on("response.output_audio_transcript.done", ({ transcript }) => texts.push(transcript));
    rt.on("response.done", ({ response: { usage } }) => {
      audioBytes.push(bytes);
      bytes = 0;
      input += usage?.input_tokens ?? 0;
      output += usage?.output_tokens ?? 0;
    });
    let isReady = false;
    rt.on("session.updated", () => void (isReady = true));
    rt.on("session.created", () =>
      rt.send({ type: "session.update", session: { type: "realtime", instructions: "Be kind." } }),
    );
    await waitFor(() => isReady, "session");
    rt.send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] },
    });
    rt.send({ type: "response.create" });
    await waitFor(() => audioBytes.length === 1, "answer to the text");
    rt.send({ type: "input_audio_buffer.append", audio: speech(10) });
    rt.send({ type: "input_audio_buffer.append", audio: silence(3) });
    await waitFor(() => audioBytes.length === 2, "answer to the speech");
    rt.close();
    return { texts, audioBytes, input, output, errors };
  },
};

const agents: SocketClient = {
  name: "@openai/agents-realtime",
  protocol: "realtime",
  package: { name: "@openai/agents-realtime", version: "0.20.0", main: "dist/index.mjs" },
  async talk({ url, key, model }, script) {
    const sdk = (await import(script)) as Any;
    const socketUrl = `${url.replace("http:", "ws:")}/v1/realtime?model=${encodeURIComponent(model)}`;
    const transport = new sdk.OpenAIRealtimeWebSocket({ url: socketUrl });
    const agent = new sdk.RealtimeAgent({ name: "Friend", instructions: "Be kind." });
    const session = new sdk.RealtimeSession(agent, { transport, model });
    const audioBytes: number[] = [];
    const errors: string[] = [];
    let bytes = 0;
    session.on("error", ({ error }: Any) => errors.push(JSON.stringify(error)));
    transport.on("audio", ({ data }: Any) => (bytes += data.byteLength));
    transport.on("*", (event: Any) => {
      if (event.type !== "response.done") return;
      audioBytes.push(bytes);
      bytes = 0;
    });
    await session.connect({ apiKey: key, url: socketUrl });
    session.sendMessage("Hello");
    await waitFor(() => audioBytes.length === 1, "answer to the text");
    const toBuffer = (base64: string) => {
      const { buffer, byteOffset, byteLength } = Buffer.from(base64, "base64");
      return buffer.slice(byteOffset, byteOffset + byteLength);
    };
    session.sendAudio(toBuffer(speech(10)));
    session.sendAudio(toBuffer(silence(3)));
    await waitFor(() => audioBytes.length === 2, "answer to the speech");
    const texts = (session.history as Any[])
      .filter((item) => item.role === "assistant")
      .map((item) => item.content.map((part: Any) => part.transcript ?? part.text).join(""));
    const { inputTokens: input, outputTokens: output } = session.usage;
    session.close();
    return { texts, audioBytes, input, output, errors };
  },
};

const googleGenAi = (version: string): SocketClient => ({
  name: `@google/genai ${version}`,
  protocol: "gemini-live",
  package: { name: "@google/genai", version, main: "dist/node/index.mjs" },
  async talk({ url, key, model }, script) {
    const { GoogleGenAI } = (await import(script)) as Any;
    const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
    const audioBytes: number[] = [];
    const errors: string[] = [];
    let [bytes, turns, input, output] = [0, 0, 0, 0];
    const session = await ai.live.connect({
      model,
      config: { responseModalities: ["AUDIO"], systemInstruction: "Be kind." },
      callbacks: {
        onmessage({ serverContent, usageMetadata }: Any) {
          for (const part of serverContent?.modelTurn?.parts ?? [])
            if (part.inlineData) bytes += Buffer.from(part.inlineData.data, "base64").length;
          input += usageMetadata?.promptTokenCount ?? 0;
          output += usageMetadata?.responseTokenCount ?? 0;
          if (!serverContent?.turnComplete) return;
          turns++;
          audioBytes.push(bytes);
          bytes = 0;
        },
        onerror: ({ message }: Any) => errors.push(String(message)),
        onclose: ({ code, reason }: Any) =>
          code !== 1000 && code !== 1005 && errors.push(`${code} ${reason}`),
      },
    });
    session.sendClientContent({ turns: "Hello", turnComplete: true });
    await waitFor(() => turns === 1 || errors.length > 0, "answer to the text");
    const audio = (byte: number) => ({
      audio: {
        data: Buffer.alloc(32_000, byte).toString("base64"),
        mimeType: "audio/pcm;rate=16000",
      },
    });
    session.sendRealtimeInput(audio(7));
    session.sendRealtimeInput(audio(0));
    await waitFor(() => turns === 2 || errors.length > 0, "answer to the speech");
    session.close();
    return { texts: [], audioBytes, input, output, errors };
  },
});

const run = promisify(execFile);

const pythonClient = (client: "openai" | "google", name: string): SocketClient => ({
  name: `${name} (Python)`,
  protocol: client === "openai" ? "realtime" : "gemini-live",
  async talk({ url, key, model }) {
    const script = join(import.meta.dirname, "talk.py");
    const { stdout } = await run(await python(), [script, client, url, key, model]);
    return JSON.parse(stdout) as Heard;
  },
});

export const JAVASCRIPT_CLIENTS: readonly SocketClient[] = [openaiJs, agents, googleGenAi("3.3.0")];

export const PYTHON_CLIENTS: readonly SocketClient[] = [
  pythonClient("openai", "openai"),
  pythonClient("google", "google-genai"),
];

export const scriptOf = async (client: SocketClient): Promise<string> =>
  client.package ? await installed(client.package) : "";
