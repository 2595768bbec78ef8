// Sound is told from words by its bytes, whatever it is called: hosts answer with an error under a 200, as `audio/mpeg`.
import { isUtf8 } from "node:buffer";
import { fail } from "../../../model/error.ts";
import { throwFailure } from "../../failure/failure.ts";
import { object, parsed } from "../../json.ts";

/** No error is longer. */
const MOST = 64 * 1024;

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);
const isControl = (byte: number): boolean => byte < 32 && !isSpace(byte);
/** As JSON begins, and a page. */
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x3c;

interface Sounding {
  push(chunk: Buffer): void;
  end(): void;
}

/**
 * Hands on sound as it comes. What begins as JSON or a page does is kept back until a byte that stands in no text: sound has one
 * within a few bytes, words have none to their end.
 */
export function sounding(pass: (sound: Buffer) => void): Sounding {
  let held: Buffer[] | undefined = [];
  let size = 0;
  let opened = false;
  const isSound = (chunk: Buffer): boolean => {
    for (const byte of chunk)
      if (opened ? isControl(byte) : !isSpace(byte)) {
        if (opened || !isOpening(byte)) return true;
        opened = true;
      }
    return false;
  };
  const over = (bytes: Buffer): void => (opened && isUtf8(bytes) ? refused(bytes) : pass(bytes));
  return {
    push(chunk) {
      if (!held) return pass(chunk);
      held.push(chunk);
      size += chunk.length;
      const known = isSound(chunk);
      if (!known && size <= MOST) return;
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

function refused(bytes: Buffer): never {
  const said = parsed(bytes.toString());
  if (object(said?.["error"])) throwFailure(said!);
  return fail("upstream", "The provider answered with words where sound was asked for.", {
    code: "bad_answer",
  });
}
