// The official SDKs, used in the simplest way: what they do not notice, most users will not notice
// either.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { think, type ScriptProtocol } from "tollgate/testing";

const TEXT = "Grüße aus Oslo 🌍";
/** The upstream's response in these tests. */
export const SPEECH = think("Hm.")
  .say(TEXT)
  .call("go", { to: "Rome" })
  .usage({ input: 30, output: 12 });
/** A client's final result: text and calls. */
export const ALL = `${TEXT}|go {"to":"Rome"}`;

export interface Heard {
  readonly all: string;
  /** The protocol's own end arrived. */
  readonly ended: boolean;
}
/** `words`: its prompt. */
export type Client = (model: string, words: string) => Promise<Heard>;

export interface Clients {
  readonly streamed: { readonly [spoken in ScriptProtocol]: Client };
  readonly whole: { readonly [spoken in ScriptProtocol]: Client };
}

export function clientsOf(
  { key: apiKey, url }: { key: string; url: string },
  timeout = 20_000,
): Clients {
  const about = { apiKey, maxRetries: 0, timeout };
  const openai = new OpenAI({ ...about, baseURL: `${url}/v1` });
  const anthropic = new Anthropic({ ...about, baseURL: url });
  return { streamed: streamed(openai, anthropic), whole: whole(openai, anthropic) };
}

const streamed = (
  openai: OpenAI,
  anthropic: Anthropic,
): { readonly [spoken in ScriptProtocol]: Client } => ({
  async "chat-completions"(model, words) {
    let [text, name, args, ended] = ["", "", "", false];
    const stream = await openai.chat.completions.create({
      model,
      messages: [{ role: "user", content: words }],
      stream: true,
    });
    for await (const { choices } of stream) {
      const delta = choices[0]?.delta;
      text += delta?.content ?? "";
      name += delta?.tool_calls?.[0]?.function?.name ?? "";
      args += delta?.tool_calls?.[0]?.function?.arguments ?? "";
      ended ||= Boolean(choices[0]?.finish_reason);
    }
    return { all: `${text}|${name} ${args}`, ended };
  },
  async messages(model, words) {
    let [text, name, args, ended] = ["", "", "", false];
    const stream = await anthropic.messages.create({
      model,
      max_tokens: 100,
      messages: [{ role: "user", content: words }],
      stream: true,
    });
    for await (const event of stream) {
      if (event.type === "content_block_start" && event.content_block.type === "tool_use")
        name += event.content_block.name;
      if (event.type === "content_block_delta") {
        if (event.delta.type === "text_delta") text += event.delta.text;
        if (event.delta.type === "input_json_delta") args += event.delta.partial_json;
      }
      ended ||= event.type === "message_stop";
    }
    return { all: `${text}|${name} ${args}`, ended };
  },
  async responses(model, words) {
    let [text, name, args, ended] = ["", "", "", false];
    for await (const event of await openai.responses.create({
      model,
      input: words,
      stream: true,
    })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.function_call_arguments.delta") args += event.delta;
      if (event.type === "response.output_item.added" && event.item.type === "function_call")
        name += event.item.name;
      ended ||= event.type === "response.completed";
    }
    return { all: `${text}|${name} ${args}`, ended };
  },
});

const whole = (
  openai: OpenAI,
  anthropic: Anthropic,
): { readonly [spoken in ScriptProtocol]: Client } => ({
  async "chat-completions"(model, words) {
    const { choices } = await openai.chat.completions.create({
      model,
      messages: [{ role: "user", content: words }],
    });
    const [call] = choices[0]!.message.tool_calls as [OpenAI.ChatCompletionMessageFunctionToolCall];
    const all = `${choices[0]!.message.content}|${call.function.name} ${call.function.arguments}`;
    return { all, ended: true };
  },
  async messages(model, words) {
    const { content } = await anthropic.messages.create({
      model,
      max_tokens: 100,
      messages: [{ role: "user", content: words }],
    });
    const said = content.map((block) =>
      block.type === "text"
        ? block.text
        : block.type === "tool_use"
          ? `|${block.name} ${JSON.stringify(block.input)}`
          : "",
    );
    return { all: said.join(""), ended: true };
  },
  async responses(model, words) {
    const { output_text: text, output } = await openai.responses.create({ model, input: words });
    const said = output.map((item) =>
      item.type === "function_call" ? `|${item.name} ${item.arguments}` : "",
    );
    return { all: text + said.join(""), ended: true };
  },
});
