// Distinguishes audio from text by its bytes and ignores the declared type. Some backends send an
// error with status 200 and the type `audio/mpeg`.
import { isUtf8 } from "node:buffer";
import { fail } from "../../model/error.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import { asObject, parseObject } from "../json-values.ts";

/** Maximum size of an error text, in bytes. No known error is longer. */
const MAX_TEXT_BYTES = 64 * 1024;

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);

const isControl = (byte: number): boolean => byte < 32 && !isSpace(byte);

/** Whether a byte begins JSON or an HTML page. */
const isTextStart = (byte: number): boolean => byte === 0x7b || byte === 0x3c;

interface AudioDetector {
  push(chunk: Buffer): void;
  end(): void;
}

/**
 * Forwards audio as it arrives. A response that begins like JSON or HTML is held back until a byte
 * that no text contains. Audio has such a byte within its first few bytes, and text has none up to
 * its end.
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
  return fail("upstream", "The provider returned text instead of audio.", {
    code: "bad_answer",
  });
}
