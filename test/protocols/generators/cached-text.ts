// The part of a request that a provider caches: tools, instructions, and messages, in this order.
import type { Body } from "tollgate/plugin";

/** Members of a body in the order in which a provider reads them. */
const PARTS: { readonly [protocol: string]: readonly [before: readonly string[], list: string] } = {
  "chat-completions": [["tools"], "messages"],
  messages: [["tools", "system"], "messages"],
  responses: [["tools", "instructions"], "input"],
  gemini: [["tools", "systemInstruction"], "contents"],
};

/** The text of a body that a provider caches, and the part of it that a later turn must repeat. */
export function cachedText(
  protocol: string,
  body: Body,
): { readonly whole: string; readonly prefix: string } {
  const [before, list] = PARTS[protocol]!;
  const head = before.map((name) => `${name}:${toText(body[name])}`).join("\n");
  const value = body[list];
  // OpenAI's Responses API accepts a text in place of a list with one message.
  const whole = `${head}\n${toText(
    typeof value === "string" ? [{ role: "user", content: value }] : value,
  )}`;
  return { whole, prefix: whole.replace(/[\]}"]+$/, "") };
}

/** A breakpoint is a mark, and no part of the prompt. */
const toText = (value: unknown): string | undefined =>
  JSON.stringify(value, (key, each: unknown) => (key === "cache_control" ? undefined : each));
