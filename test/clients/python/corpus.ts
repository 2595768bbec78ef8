// Responses of every form in each protocol, for parsers in another language.
import { writeFile } from "node:fs/promises";
import * as fc from "fast-check";
import { collectResponse } from "tollgate/plugin";
import { createResponseContext, encodeText } from "tollgate/testing";
import { anyAnswers } from "../../protocols/generators/any-answer.ts";
import { chats } from "../../protocols/generators/codecs.ts";
import { said } from "../../protocols/generators/essence.ts";

const EACH = 150;

/** Writes a line for each response, and prints the seed that reproduces them. */
export async function writeCorpus(path: string, seed = Date.now() % 2 ** 31): Promise<number> {
  const lines = Object.entries(chats).flatMap(([wire, { server }]) => {
    const to = (stream: boolean) =>
      createResponseContext({ stream, body: { stream_options: { include_usage: true } } });
    // A chat completions client only receives a freeform call if it declared one.
    const shape = wire === "chat-completions" ? { kinds: ["text", "reasoning", "call"] } : {};
    return fc.sample(anyAnswers(shape as object), { numRuns: EACH, seed }).map((events) => {
      const answer = collectResponse(events);
      const { text, calls } = said(answer);
      const refuses = answer.blocks.some(({ type }) => type === "refusal");
      return JSON.stringify({
        wire,
        stream: encodeText(server as never, events, to(true)),
        whole: server!.encodeResponse(answer, to(false)),
        // Some refusals have no text.
        text: refuses ? null : text,
        calls: calls.map(({ name }) => name),
      });
    });
  });
  await writeFile(path, lines.join("\n"));
  return seed;
}
