// Forms that are read while they arrive: the parser finds the same parts as the parser of whole
// forms, and rejects the same forms, however the form is split.
import fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { readFormParts } from "../../../src/pipeline/body/form-stream.ts";
import { parseMultipart } from "../../../src/pipeline/body/multipart-parser.ts";
import { trialCount } from "../../kit/law-effort.ts";

afterEach(() => vi.restoreAllMocks());

const BOUNDARY = "-b-";
const MARK = `--${BOUNDARY}`;
const piece = fc.oneof(
  fc.constantFrom(
    MARK,
    `\r\n${MARK}`,
    `\r\n${MARK}\r\n`,
    `${MARK}--`,
    `\r\n${MARK}--\r\n`,
    "\r\n",
    "\r\n\r\n",
    'content-disposition: form-data; name="a"\r\n\r\n',
    'content-disposition: form-data; name="f"; filename="x.bin"\r\ncontent-type: a/b\r\n\r\n',
    "--",
    "-",
    "\r",
  ),
  fc.string({ maxLength: 6 }),
);
const part = fc
  .tuple(fc.constantFrom("a", "f", "long"), fc.array(piece, { maxLength: 4 }))
  .map(
    ([name, content]) =>
      `${MARK}\r\ncontent-disposition: form-data; name="${name}"${name === "f" ? '; filename="x"' : ""}\r\n\r\n${content.join("")}\r\n`,
  );
/** Forms that are often valid, and texts that often look like one. */
const forms = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("", "\r\n"),
      fc.array(part, { maxLength: 4 }),
      fc.constantFrom("--", "--\r\n", "", "--x"),
    )
    .map(([start, parts, end]) => `${start}${parts.join("")}${MARK}${end}`),
  fc.array(piece, { maxLength: 12 }).map((pieces) => MARK + pieces.join("")),
);

async function* split(raw: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer, void> {
  for (let at = 0, i = 0; at < raw.length; i++) {
    const size = sizes.length === 0 ? raw.length : sizes[i % sizes.length]!;
    yield Buffer.copyBytesFrom(raw, at, size) as Buffer;
    at += size;
  }
}

type ReadPart = readonly [name: string, filename: string | undefined, content: string];

async function readAll(raw: Buffer, sizes: readonly number[]): Promise<ReadPart[] | undefined> {
  const found: ReadPart[] = [];
  try {
    for await (const { name, filename, content } of readFormParts(split(raw, sizes), BOUNDARY)) {
      const pieces: Uint8Array[] = [];
      for await (const bytes of content) {
        pieces.push(Uint8Array.from(bytes));
        // A receiver owns the pieces, and may free their memory.
        if (bytes.byteLength === bytes.buffer.byteLength) (bytes.buffer as ArrayBuffer).transfer(0);
      }
      found.push([name, filename, Buffer.concat(pieces).toString("latin1")]);
    }
    return found;
  } catch {
    return undefined;
  }
}

it("has the same parts as a form that is read at once, or is rejected as that is", () =>
  fc.assert(
    fc.asyncProperty(
      forms,
      fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
      async (text, sizes) => {
        const raw = Buffer.from(text, "latin1");
        const whole = parseMultipart(raw, BOUNDARY);
        const expected = whole.flaw
          ? undefined
          : whole.parts.map(({ name, filename, contentStart, contentEnd }) => [
              name,
              filename,
              raw.subarray(contentStart, contentEnd).toString("latin1"),
            ]);
        expect(await readAll(raw, sizes)).toEqual(expected);
      },
    ),
    { numRuns: trialCount(2_000) },
  ));

it("skips the content that is not read", async () => {
  const raw = Buffer.from(
    ["a", "b"]
      .map(
        (name) =>
          `${MARK}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${"x".repeat(99)}\r\n`,
      )
      .join("") + `${MARK}--`,
  );
  const names: string[] = [];
  for await (const { name } of readFormParts(split(raw, [7]), BOUNDARY)) names.push(name);
  expect(names).toEqual(["a", "b"]);
});

it("holds one chunk of a large file at a time", async () => {
  let ahead = 0;
  let most = 0;
  const chunks = async function* () {
    yield Buffer.from(`${MARK}\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\n`);
    for (let i = 0; i < 100; i++) {
      most = Math.max(most, (ahead += 65_536));
      yield Buffer.alloc(65_536, 120);
    }
    yield Buffer.from(`\r\n${MARK}--`);
  };
  let size = 0;
  for await (const { content } of readFormParts(chunks(), BOUNDARY))
    for await (const bytes of content) {
      size += bytes.length;
      ahead -= bytes.length;
    }
  expect(size).toBe(6_553_600);
  expect(most).toBeLessThan(3 * 65_536);
});

it("copies the headers of a part a bounded number of times, however they are split", async () => {
  const name = "n".repeat(4_000);
  const raw = Buffer.from(
    `${MARK}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\nx\r\n${MARK}--`,
  );
  const copies = vi.spyOn(Buffer.prototype, "copy");
  const concats = vi.spyOn(Buffer, "concat");
  expect(await readAll(raw, [1])).toEqual([[name, undefined, "x"]]);
  const copied = copies.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
  expect(copied).toBeLessThan(4 * raw.length);
  // The test itself joins the content.
  expect(concats).toHaveBeenCalledTimes(1);
});
