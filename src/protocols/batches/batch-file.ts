// Encodes the lines of a batch as the body of a request: JSON Lines, one JSON array, or a form with
// a file. The body is created while it is sent, so it is never in memory as a whole. Its length is
// known before, because all line IDs have the same length.
import type { BatchInput } from "../../plugin/index.ts";

/** Text around the ID and the body of each line. */
export interface LineFormat {
  /** Text before the ID. */
  readonly before: string;
  /** Text between the ID and the body. */
  readonly between: string;
  /** Text after the body. */
  readonly after: string;
  /** Text between two lines. Default: none. */
  readonly separator?: string;
}

/** A body that is created while it is sent. */
export interface BatchBody {
  /** Length in bytes. */
  readonly bytes: number;
  /** Returns the pieces of the body, from the first one. */
  pieces(): AsyncIterable<Buffer>;
}

/** Number of digits of a line ID. */
const ID_LENGTH = 8;
/** Size from which a piece is sent, in bytes. Small lines are sent together. */
const PIECE_BYTES = 64 * 1024;

/** Returns the lines in a format, with `head` before the first line and `tail` after the last. */
export function encodeBatchLines(
  input: BatchInput,
  { before, between, after, separator = "" }: LineFormat,
  { head = "", tail = "" }: { readonly head?: string; readonly tail?: string } = {},
): BatchBody {
  const around = Buffer.byteLength(before + between + after) + ID_LENGTH;
  const separators = Buffer.byteLength(separator) * Math.max(0, input.count - 1);
  return {
    bytes: Buffer.byteLength(head + tail) + input.bytes + input.count * around + separators,
    async *pieces() {
      let held = head;
      let isFirst = true;
      for await (const { id, body } of input.lines()) {
        held += `${isFirst ? "" : separator}${before}${id}${between}${body}${after}`;
        isFirst = false;
        // A UTF-16 length is a lower bound of the length in bytes.
        if (held.length < PIECE_BYTES) continue;
        yield Buffer.from(held);
        held = "";
      }
      held += tail;
      if (held !== "") yield Buffer.from(held);
    },
  };
}

/** A form that contains fields and one file. */
export interface BatchForm extends BatchBody {
  readonly contentType: string;
}

/**
 * Returns a form with the lines as its file. The boundary cannot occur in the file: it follows a
 * CRLF, and the lines contain no CR.
 */
export function encodeBatchForm(
  input: BatchInput,
  format: LineFormat,
  fields: Readonly<Record<string, string>>,
): BatchForm {
  const boundary = `tollgate-${input.key}`;
  const parts = Object.entries(fields).map(
    ([name, value]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file =
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${input.key}.jsonl"\r\n` +
    "content-type: application/jsonl\r\n\r\n";
  return {
    ...encodeBatchLines(input, format, {
      head: parts.join("") + file,
      tail: `\r\n--${boundary}--\r\n`,
    }),
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}
