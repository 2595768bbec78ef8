import { isUtf8 } from "node:buffer";
import { BOUNDS } from "../../lib/bounds.ts";
import { BytePieces } from "../../lib/net/byte-pieces.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Decoder } from "../../plugin/protocol.ts";

const LF = 10;

/**
 * Decodes a stream into lines of text, for streams of JSON lines. Lines are passed without their
 * line ending, and blank lines are skipped. Chunk boundaries can be anywhere, and the last line
 * needs no line ending.
 *
 * Throws an upstream error if the UTF-8 is invalid or a line is longer than `maxLineBytes`.
 */
export function createLineDecoder(
  on: (line: string) => void,
  maxLineBytes: number = BOUNDS.event.max,
): Decoder {
  const held = new BytePieces();
  const bounded = (bytes: number) => {
    if (held.size + bytes > maxLineBytes) failBoundExceeded("event", maxLineBytes);
  };
  const take = (b: Buffer) => {
    const text = b.toString().trim();
    if (text.includes("\ufffd") && !isUtf8(b))
      fail("upstream", "The provider's stream is not valid UTF-8.", { code: "invalid_utf8" });
    if (text !== "") on(text);
  };
  return {
    push(chunk) {
      let from = 0;
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
        const rest = chunk.subarray(from, end);
        bounded(rest.length);
        from = end + 1;
        if (held.size > 0) held.add(rest);
        take(held.size > 0 ? held.take() : rest);
      }
      if (from === chunk.length) return;
      bounded(chunk.length - from);
      held.add(chunk.subarray(from));
    },
    end() {
      take(held.take());
    },
  };
}
