// Sound is told from words by its bytes, whatever it is called: hosts answer with an error under a 200, as `audio/mpeg`.
import { isUtf8 } from "node:buffer";
import { fail } from "../../../model/error.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asObject, parseObject } from "../../json-values.ts";

/** No error is longer. */
const MAX_TEXT_BYTES = 64 * 1024;

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);
const isControl = (byte: number): boolean => byte < 32 && !isSpace(byte);
/** As JSON begins, and a page. */
const isTextStart = (byte: number): boolean => byte === 0x7b || byte === 0x3c;

interface AudioDetector {
  push(chunk: Buffer): void;
  end(): void;
}

/**
 * Hands on sound as it comes. What begins as JSON or a page does is kept back until a byte that stands in no text: sound has one
 * within a few bytes, words have none to their end.
 */
export function createAudioDetector(pass: (sound: Buffer) => void): AudioDetector {
  let held: Buffer[] | undefined = [];
  let size = 0;
  let opened = false;
  const isSound = (chunk: Buffer): boolean => {
    for (const byte of chunk)
      if (opened ? isControl(byte) : !isSpace(byte)) {
        if (opened || !isTextStart(byte)) return true;
        opened = true;
      }
    return false;
  };
  const over = (bytes: Buffer): void =>
    opened && isUtf8(bytes) ? failTextResponse(bytes) : pass(bytes);
  return {
    push(chunk) {
      if (!held) return pass(chunk);
      held.push(chunk);
      size += chunk.length;
      const known = isSound(chunk);
      if (!known && size <= MAX_TEXT_BYTES) return;
      const bytes = Buffer.concat(held);
      held = undefined;
      if (known) pass(bytes);
      else over(bytes);
    },
    end() {
      if (held && size > 0) over(Buffer.concat(held));
      held = undefined;
    },
  };
}

function failTextResponse(bytes: Buffer): never {
  const json = parseObject(bytes.toString());
  if (asObject(json?.["error"])) throwParsedError(json!);
  return fail("upstream", "The provider answered with words where sound was asked for.", {
    code: "bad_answer",
  });
}
