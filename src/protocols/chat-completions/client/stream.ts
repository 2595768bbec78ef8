// Client half: decodes a stream of chunks into events. `reader.ts` interprets everything that
// servers of this protocol send. A non-streaming response is a stream of one chunk.
import { fail } from "../../../model/error.ts";
import type { CallContext, Decoder, ModelEvent } from "../../../plugin/index.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { ChunkReader } from "./reader.ts";
import { ChunkTemplate } from "./chunk-template.ts";
import { firstByte, isErrorObject, parsed, throwFault } from "./fault.ts";
import { decodeResponse } from "./response.ts";

export function createDecoder(
  emit: (event: ModelEvent) => void,
  of: CallContext,
  dialect: ChatDialect,
): Decoder {
  const answer = new ChunkReader(emit, traitsOf(dialect, of.model));
  const alike = new ChunkTemplate();
  const events = createEventDecoder((name, data) => {
    if (answer.isDone) return;
    const words = name === "error" ? undefined : alike.matchContent(data);
    if (words !== undefined) return answer.contentText(words);
    if (data === "[DONE]") return answer.end();
    const chunk = parsed(data);
    if (name === "error" || isErrorObject(chunk)) throwFault(chunk);
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
        if (first === 60) failNotAStream();
      }
      if (plain) plain.push(chunk);
      else events.push(chunk);
    },
    end() {
      // Some providers respond to a streaming request with one JSON text: an error or the whole
      // response.
      if (plain) return decodeResponse(Buffer.concat(plain), emit, of, dialect);
      events.end();
      answer.end();
    },
  };
}

const failNotAStream = (): never =>
  fail("upstream", "The provider returned a web page instead of a stream.", {
    code: "malformed_answer",
  });
