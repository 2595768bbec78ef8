// Client half: a stream of chunks as events. `reader.ts` is the one reading of what this wire's servers send; a whole
// answer is a stream of one chunk.
import { fail } from "../../../model/error.ts";
import type { CallContext, Decoder, ModelEvent } from "../../../plugin/index.ts";
import { sse } from "../../sse/index.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { ChatReader } from "./reader.ts";
import { AlikeChunks } from "./alike-chunks.ts";
import { firstByte, isError, parsed, throwFault } from "./fault.ts";
import { whole } from "./whole.ts";

export function stream(
  emit: (event: ModelEvent) => void,
  of: CallContext,
  dialect: ChatDialect,
): Decoder {
  const answer = new ChatReader(emit, traitsOf(dialect, of.model));
  const alike = new AlikeChunks();
  const events = sse((name, data) => {
    if (answer.done) return;
    const words = name === "error" ? undefined : alike.words(data);
    if (words !== undefined) return answer.words(words);
    if (data === "[DONE]") return answer.end();
    const chunk = parsed(data);
    if (name === "error" || isError(chunk)) throwFault(chunk);
    if (answer.chunk(chunk)) alike.learn(data);
  });
  let plain: Buffer[] | undefined;
  let begun = false;
  return {
    push(chunk) {
      if (!begun) {
        const first = firstByte(chunk);
        if (first === undefined) return;
        begun = true;
        if (first === 123 || first === 91) plain = [];
        if (first === 60) notAStream();
      }
      if (plain) plain.push(chunk);
      else events.push(chunk);
    },
    end() {
      // Asked for a stream, some answer with one JSON text: an error, or everything at once.
      if (plain) return whole(Buffer.concat(plain), emit, of, dialect);
      events.end();
      answer.end();
    },
  };
}

const notAStream = (): never =>
  fail("upstream", "The provider answered with a page instead of a stream.", {
    code: "malformed_answer",
  });
