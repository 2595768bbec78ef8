// Forms: any content with any boundary is decoded byte for byte, edits change only what they name,
// and ambiguous forms are rejected. Another implementation of the standard is used for comparison.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFilePart, type Body, type Field } from "tollgate/plugin";
import {
  parseAllowances,
  findReferences,
  findDisallowedField,
} from "../../../src/protocols/references/index.ts";
import { rejectAmbiguousKeys } from "../../../src/pipeline/stages/ambiguous-keys.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";
import { OutgoingRequest } from "../../../src/pipeline/upstream/outgoing-request.ts";
import {
  parseMultipartBody,
  parseFieldPath,
  applyMultipartEdits,
  createBoundary,
  encodeMultipart,
} from "../../../src/pipeline/body/multipart-body.ts";
import {
  boundaryOf,
  multipartContentType,
  isMultipart,
  parseMultipart,
} from "../../../src/pipeline/body/multipart-parser.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

const BCHARS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=?";
const boundaries = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...BCHARS, " "), maxLength: 69 }),
    fc.constantFrom(...BCHARS),
  )
  .map(([text, last]) => text + last);
/** Bytes that often consist of the boundary's characters. */
const bytes = (boundary: string) =>
  fc
    .array(
      fc.oneof(
        fc.uint8Array({ maxLength: 40 }).map((list) => Buffer.from(list)),
        fc
          .constantFrom("\r\n", "\r", "\n", "--", "-", "\r\n--", "\r\n\r\n")
          .map((s) => Buffer.from(s)),
        fc.nat(boundary.length - 1).map((n) => Buffer.from(`\r\n--${boundary.slice(0, n)}`)),
      ),
      { maxLength: 8 },
    )
    .map((list) => Buffer.concat(list))
    .filter((all) => !all.includes(`--${boundary}`));
const names = fc
  .string({ unit: fc.constantFrom(..."abcxyz_-. é\"\r\n'"), minLength: 1, maxLength: 8 })
  .filter((name) => !name.includes("["));
const text = fc.string({ unit: codePoint, maxLength: 60 }).map((s) => s.toWellFormed());
const filenames = fc
  .string({ unit: fc.constantFrom(...'abc. é"\\;=\r\n/'), maxLength: 10 })
  .filter((name) => !/\\$|\\["\r\n]/.test(name));
const mimes = fc.constantFrom("audio/wav", "application/octet-stream", "text/plain; charset=utf-8");
const file = (boundary: string) =>
  fc.record({ filename: filenames, mime: mimes, data: bytes(boundary) });
const fieldOf = (boundary: string): fc.Arbitrary<Field> => {
  const words = text.filter((s) => !s.includes(`--${boundary}`));
  const one = fc.oneof(words, file(boundary));
  const member = fc.constantFrom("a", "b", "url");
  return fc.oneof(
    { weight: 4, arbitrary: one },
    fc.array(one, { minLength: 1, maxLength: 3 }),
    fc.dictionary(member, words, { minKeys: 1, maxKeys: 3 }),
    // Each object of a list starts with a member that the previous one has.
    fc.array(fc.record({ a: words, b: words }), { minLength: 1, maxLength: 3 }),
  ) as fc.Arbitrary<Field>;
};
const forms = boundaries.chain((boundary) =>
  fc.record({
    boundary: fc.constant(boundary),
    body: fc.dictionary(names, fieldOf(boundary), { maxKeys: 5 }),
  }),
);

/** As plain values, including the bytes of files. */
const plain = (value: unknown): unknown =>
  isFilePart(value)
    ? { filename: value.filename, mime: value.mime, data: value.data.toString("latin1") }
    : Array.isArray(value)
      ? value.map(plain)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
        : value;

const read = (raw: Buffer, boundary: string) => {
  const seen = parseMultipartBody(raw, boundary);
  if (seen.flaw) throw new Error(`${seen.flaw.code}: ${seen.flaw.message}`);
  return seen;
};
const codeOf = (raw: Buffer | string, boundary = "b") =>
  parseMultipartBody(Buffer.from(raw as string), boundary).flaw?.code;

describe("an encoded form", () => {
  it("is decoded to the same content, for any content and boundary", () => {
    fc.assert(
      fc.property(forms, ({ boundary, body }) => {
        const raw = encodeMultipart(body, boundary);
        expect(plain(read(raw, boundary).body)).toEqual(plain(body));
      }),
    );
  });

  it("is decoded to the same content by another parser", () =>
    fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fieldOf("tollgate"), { maxKeys: 5 }),
        async (body) => {
          const boundary = createBoundary();
          const raw = encodeMultipart(body, boundary);
          const type = multipartContentType(boundary);
          const judge = await new Response(Uint8Array.from(raw), {
            headers: { "content-type": type },
          }).formData();
          const judged: unknown[] = [];
          for (const [name, value] of judge)
            judged.push([
              name,
              typeof value === "string"
                ? value
                : [value.name, Buffer.from(await value.arrayBuffer()).toString("latin1")],
            ]);
          const found = parseMultipart(raw, boundary);
          if (found.flaw) throw new Error(found.flaw.message);
          const ours = found.parts.map(({ name, filename, contentStart, contentEnd }) => {
            const content = raw.subarray(contentStart, contentEnd);
            // The other parser removes a byte order mark.
            if (filename === undefined) return [name, content.toString().replace(/^\uFEFF/, "")];
            return [name, [filename, content.toString("latin1")]];
          });
          expect(ours).toEqual(judged.map((one) => one));
        },
      ),
      { numRuns: trialCount(60) },
    ));

  it("omits undefined values, and rejects values that a form cannot express", () => {
    const body = { a: undefined, b: null, c: true, d: 1.5, e: [], f: [false, null, 2] };
    expect(read(encodeMultipart(body, "b"), "b").body).toEqual({
      c: "true",
      d: "1.5",
      f: ["false", "2"],
    });
    expect(() => encodeMultipart({ a: [[1]] }, "b")).toThrow(/nested list/);
    const odd = { file: { filename: 'a"\r\n\\', mime: "x/y\r\nX-Evil: 1", data: Buffer.alloc(1) } };
    expect(read(encodeMultipart(odd, "b"), "b").body).toMatchObject({
      file: { filename: 'a"\r\n%5C', mime: "application/octet-stream" },
    });
  });
});

describe("forms of clients", () => {
  it("openai-js: files first, lists and objects in brackets", async () => {
    const form = new FormData();
    form.append("file", new Blob([Buffer.from([1, 2])], { type: "audio/wav" }), "né.wav");
    form.append("model", "whisper-1");
    form.append("include[]", "logprobs");
    form.append("timestamp_granularities[]", "word");
    form.append("timestamp_granularities[]", "segment");
    form.append("images[][image_url]", "u1");
    form.append("images[][image_url]", "u2");
    form.append("images[][file_id]", "f2");
    form.append("chunking_strategy[type]", "server_vad");
    form.append("stream", "true");
    const res = new Response(form);
    const boundary = boundaryOf(res.headers.get("content-type")!)!;
    const { body } = read(Buffer.from(await res.arrayBuffer()), boundary);
    expect(plain(body)).toEqual({
      file: { filename: "né.wav", mime: "audio/wav", data: "\u0001\u0002" },
      model: "whisper-1",
      include: ["logprobs"],
      timestamp_granularities: ["word", "segment"],
      images: [{ image_url: "u1" }, { image_url: "u2", file_id: "f2" }],
      chunking_strategy: { type: "server_vad" },
      stream: "true",
    });
  });

  it("other languages: escaped quotes, names in bytes, a leading line break, no file type", () => {
    const one = (head: string, first = "") =>
      plain(read(Buffer.from(`${first}--b\r\n${head}\r\n\r\nx\r\n--b--`), "b").body);
    const file = (filename: string, mime = "application/octet-stream") => ({
      f: { filename, mime, data: "x" },
    });
    expect(one('Content-Disposition: form-data; name="f"; filename="a\\"b\\c"')).toEqual(
      file('a"b\\c'),
    );
    expect(one("content-disposition: form-data;name=f;filename=a.wav")).toEqual(file("a.wav"));
    expect(one(`Content-Disposition: form-data; name="f"; filename*=UTF-8''n%C3%A9.wav`)).toEqual(
      file("né.wav"),
    );
    expect(
      one('Content-Type: audio/wav\r\nContent-Disposition: form-data; name="f"; filename=""'),
    ).toEqual(file("", "audio/wav"));
    expect(one('Content-Disposition: form-data; name="f"', "\r\n")).toEqual({ f: "x" });
    expect(
      one(
        'Content-Disposition: form-data; name="f"\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 1',
      ),
    ).toEqual({ f: "x" });
  });
});

describe("ambiguous forms", () => {
  const part = (head: string, content = "x") => `--b\r\n${head}\r\n\r\n${content}\r\n`;
  const field = (name: string, content = "x") =>
    part(`Content-Disposition: form-data; name="${name}"`, content);
  const END = "--b--\r\n";

  it.each([
    ["a name twice", field("a") + field("a") + END, "duplicate_key"],
    ["a name escaped and not", field("a%22") + field("a%22") + END, "duplicate_key"],
    ["a value and a list", field("a") + field("a[]") + END, "duplicate_key"],
    ["a list and a value", field("a[]") + field("a") + END, "duplicate_key"],
    ["a list and an object", field("a[]") + field("a[b]") + END, "duplicate_key"],
    ["an object's member twice", field("a[b]") + field("a[b]") + END, "duplicate_key"],
    [
      "a file and a text",
      field("a") + part('Content-Disposition: form-data; name="a"; filename="x"') + END,
      "duplicate_key",
    ],
    ["a prototype's name twice", field("__proto__") + field("__proto__") + END, "duplicate_key"],
    ["too deep a name", field(`a${"[b]".repeat(65)}`) + END, "too_deep"],
    ["a name behind a backslash", field("mod\\el") + END, "invalid_form"],
    [
      "a second name",
      part('Content-Disposition: form-data; name="a"; name="b"') + END,
      "invalid_form",
    ],
    [
      "an extended name",
      part(`Content-Disposition: form-data; name="a"; name*=UTF-8''b`) + END,
      "invalid_form",
    ],
    ["no name", part("Content-Disposition: form-data") + END, "invalid_form"],
    ["an empty name", field("") + END, "invalid_form"],
    ["no head", "--b\r\n\r\nx\r\n" + END, "invalid_form"],
    [
      "another disposition",
      part('Content-Disposition: attachment; name="a"') + END,
      "invalid_form",
    ],
    [
      "two dispositions",
      part('Content-Disposition: form-data; name="a"\r\ncontent-disposition: form-data; name="b"') +
        END,
      "invalid_form",
    ],
    ["a folded line", part('Content-Disposition: form-data;\r\n name="a"') + END, "invalid_form"],
    [
      "a bare line feed in a head",
      part('X: 1\nContent-Disposition: form-data; name="a"') + END,
      "invalid_form",
    ],
    [
      "an encoding of its own",
      part('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64') + END,
      "invalid_form",
    ],
    [
      "a file in an object",
      part('Content-Disposition: form-data; name="a[b]"; filename="x"') + END,
      "invalid_form",
    ],
    [
      "a file in an object of a list",
      part('Content-Disposition: form-data; name="a[][b]"; filename="x"') + END,
      "invalid_form",
    ],
    [
      "another alphabet",
      part('Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=utf-16') +
        END,
      "invalid_utf8",
    ],
    ["a preamble", `hello\r\n${field("a")}${END}`, "invalid_form"],
    ["an epilogue", `${field("a")}${END}more`, "invalid_form"],
    [
      "a part behind a bare line feed",
      `${field("a", 'x\n--b\r\nContent-Disposition: form-data; name="c"\r\n\r\ny')}${END}`,
      "invalid_form",
    ],
    ["a boundary after a bare line feed", `${field("a", "x\n--b\r\ny")}${END}`, "invalid_form"],
    ["a boundary in the middle of a line", `${field("a", "x --b y")}${END}`, "invalid_form"],
    ["a boundary with more behind it", `${field("a", "x\r\n--bc")}${END}`, "invalid_form"],
    ["a boundary with a space behind it", `${field("a")}--b \r\n${END}`, "invalid_form"],
    [
      "line feeds alone",
      'Content-Disposition: form-data; name="a"\n\nx\n--b--'.replace(/^/, "--b\n"),
      "invalid_form",
    ],
    ["nothing", "", "invalid_form"],
    [
      "a boundary in a head",
      '--b\r\nX: --b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--',
      "invalid_form",
    ],
  ])("%s is rejected", (_what, raw, code) => expect(codeOf(raw)).toBe(code));

  it("text that is not UTF-8 is rejected, and the bytes of a file are unchanged", () => {
    const bytes = Buffer.from([0xff, 0xfe]);
    const form = (head: string) =>
      Buffer.concat([Buffer.from(`--b\r\n${head}\r\n\r\n`), bytes, Buffer.from("\r\n--b--")]);
    expect(codeOf(form('Content-Disposition: form-data; name="a"'))).toBe("invalid_utf8");
    expect(codeOf(form('Content-Disposition: form-data; name="a"; filename=""'))).toBeUndefined();
  });

  it("a form that is truncated anywhere is rejected", () => {
    fc.assert(
      fc.property(forms, fc.double({ min: 0, max: 1, noNaN: true }), ({ boundary, body }, at) => {
        const raw = encodeMultipart(body, boundary);
        // The line break after the last boundary may be missing.
        const cut = raw.subarray(0, Math.floor(at * (raw.length - 3)));
        expect(parseMultipartBody(cut, boundary).flaw?.code).toBe("invalid_form");
      }),
    );
  });

  it("no bytes crash the parser, and its results are spans of the bytes", () => {
    const soup = fc
      .array(
        fc.oneof(
          fc.constantFrom(
            "--b",
            "\r\n",
            "--",
            "\r\n\r\n",
            'Content-Disposition: form-data; name="a"',
            "; filename=x",
            "[",
            "]",
            '"',
          ),
          fc.string({ maxLength: 4 }),
        ),
        { maxLength: 30 },
      )
      .map((list) => Buffer.from(list.join("")));
    fc.assert(
      fc.property(soup, (raw) => {
        const seen = parseMultipart(raw, "b");
        if (seen.flaw) return;
        let at = 0;
        for (const { start, contentStart, contentEnd, end } of seen.parts) {
          expect(
            start >= at &&
              contentStart > start &&
              contentEnd >= contentStart &&
              end === contentEnd + 2,
          ).toBe(true);
          at = end;
        }
        expect(seen.end).toBeGreaterThanOrEqual(at);
      }),
      { numRuns: trialCount(2000) },
    );
  });

  it.each([
    ["multipart/form-data", undefined],
    ["multipart/form-data; boundary=", undefined],
    ['multipart/form-data; boundary="a b"', "a b"],
    ['multipart/form-data; boundary="a "', undefined],
    ["multipart/form-data; boundary=a; boundary=b", undefined],
    ["multipart/form-data; boundary=a; charset=utf-8", "a"],
    ["Multipart/Form-Data; Boundary=a", "a"],
    [`multipart/form-data; boundary=${"a".repeat(71)}`, undefined],
    ['multipart/form-data; boundary="a\\"b"', undefined],
    ["multipart/form-data; boundary=a b", undefined],
  ])("the boundary of %s is %s", (type, boundary) => {
    expect(isMultipart(type)).toBe(true);
    expect(boundaryOf(type)).toBe(boundary);
  });
});

describe("an edit", () => {
  const value = fc.oneof(
    fc.string({ maxLength: 20 }).map((s) => s.toWellFormed()),
    fc.integer(),
    fc.boolean(),
    fc.constant(undefined),
    fc.array(
      fc.string({ maxLength: 5 }).map((s) => s.toWellFormed()),
      { minLength: 1, maxLength: 3 },
    ),
    fc.record({
      filename: fc.constant("x"),
      mime: mimes,
      data: fc.uint8Array().map((b) => Buffer.from(b)),
    }),
  ) as fc.Arbitrary<Field | undefined>;
  const scenes = forms.chain(({ boundary, body }) => {
    const own = Object.keys(body);
    const name = fc.oneof(names, ...(own.length > 0 ? [fc.constantFrom(...own)] : []));
    const edits = fc.uniqueArray(fc.tuple(name, value), { selector: ([n]) => n, maxLength: 4 });
    return fc.record({ boundary: fc.constant(boundary), body: fc.constant(body), edits });
  });
  const held = (raw: Buffer, boundary: string, skip: ReadonlySet<string>) => {
    const found = parseMultipart(raw, boundary);
    if (found.flaw) throw new Error(found.flaw.message);
    return found.parts
      .filter(({ name }) => !skip.has(parseFieldPath(name)[0]!))
      .map(({ start, end }) => raw.subarray(start, end).toString("latin1"));
  };

  it("changes what it names, and leaves every other part byte for byte", () => {
    fc.assert(
      fc.property(scenes, ({ boundary, body, edits }) => {
        const raw = encodeMultipart(body, boundary);
        const { layout } = read(raw, boundary);
        const all = new Map(edits);
        const mark = `--${boundary}`;
        const torn = [...all].some(([name, one]) =>
          [name, ...[one].flat()].some((x) =>
            isFilePart(x) ? x.data.includes(mark) : String(x).includes(mark),
          ),
        );
        if (torn) return;
        const after = applyMultipartEdits(raw, layout, all);
        const due: { [name: string]: unknown } = { ...(plain(body) as object) };
        for (const [name, one] of all)
          if (one === undefined) delete due[name];
          else due[name] = plain(typeof one === "object" ? one : String(one));
        expect(plain(read(after, boundary).body)).toEqual(due);
        const touched = new Set(all.keys());
        expect(held(after, boundary, touched)).toEqual(held(raw, boundary, touched));
      }),
    );
  });

  it("replaces a text in place; a removed field loses all of its parts", () => {
    const raw = encodeMultipart({ model: "a", tags: ["x", "y"], last: "z" }, "b");
    const { layout } = read(raw, "b");
    const renamed = applyMultipartEdits(raw, layout, new Map([["model", "bb"]]));
    expect(renamed.toString()).toBe(raw.toString().replace("\r\na\r\n", "\r\nbb\r\n"));
    const dropped = applyMultipartEdits(
      raw,
      layout,
      new Map<string, Field | undefined>([["tags", undefined]]),
    );
    expect(dropped.equals(encodeMultipart({ model: "a", last: "z" }, "b"))).toBe(true);
    expect(applyMultipartEdits(raw, layout, new Map()) === raw).toBe(true);
  });

  it("cannot insert the boundary", () => {
    const raw = encodeMultipart({ model: "a" }, "b");
    const { layout } = read(raw, "b");
    for (const edit of [
      ["model", "x--b--"],
      ["model", "--b"],
      ["more", "--b"],
      ["--b", "x"],
    ] as const)
      expect(() => applyMultipartEdits(raw, layout, new Map([[edit[0], edit[1]]]))).toThrow(
        /boundary/,
      );
  });
});

describe("a file", () => {
  it("is a span of the received bytes, and its digest distinguishes it from every other", () => {
    const form = (data: string): { body: Body; raw: Buffer } => {
      const raw = encodeMultipart(
        { f: { filename: "a", mime: "x/y", data: Buffer.from(data) } },
        "b",
      );
      return { raw, body: read(raw, "b").body };
    };
    const { raw, body } = form("one");
    const file = body["f"];
    if (!isFilePart(file)) throw new Error("no file");
    expect(file.data.buffer).toBe(raw.buffer);
    expect(JSON.stringify(body).length).toBeLessThan(200);
    expect(JSON.stringify(body)).not.toBe(JSON.stringify(form("two").body));
    expect(JSON.stringify(body)).toBe(JSON.stringify(form("one").body));
  });
});

describe("an outgoing request", () => {
  it("has headers that match its body", () => {
    const fields = fieldOf("b").filter((one) => !JSON.stringify(plain(one)).includes("--b"));
    const bodies = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), fields);
    const edits = fc.array(fc.tuple(fc.constantFrom("a", "b", "e"), fc.option(fields)));
    fc.assert(
      fc.property(bodies, edits, fc.boolean(), (body, list, verbatim) => {
        const raw = encodeMultipart(body, "b");
        const seen = read(raw, "b");
        const out = new OutgoingRequest({
          method: "POST",
          path: "/",
          ...(verbatim ? { body: seen.body, raw, form: seen.layout } : { body }),
        });
        out.setHeader("content-type", verbatim ? multipartContentType("b") : "application/json");
        for (const [name, value] of list) out.set(name, value ?? undefined);
        const bytes = out.toChunks()!.toBuffer();
        const boundary = boundaryOf(out.headers["content-type"]!);
        const said = boundary ? read(bytes, boundary).body : JSON.parse(bytes.toString());
        expect(plain(said)).toEqual(plain(out.toBody()));
        const files = Object.values(out.toBody()!).some((one) =>
          JSON.stringify(plain(one)).includes('"filename"'),
        );
        expect(boundary !== undefined).toBe(verbatim || files);
      }),
    );
  });
});

describe("request analysis", () => {
  it("does not search files", () => {
    const data = Buffer.alloc(32 * 1024 * 1024, 7);
    const raw = encodeMultipart({ file: { filename: "a", mime: "x/y", data }, Odd: "x" }, "b");
    const { body, hasCaseVariants } = read(raw, "b");
    expect(hasCaseVariants).toBe(true);
    // A garbage collection can take longer than the analysis, so the shortest of several counts.
    const times = Array.from({ length: 5 }, () => {
      const before = ownCpuMs();
      rejectAmbiguousKeys(body, { type: "object", properties: { file: { type: "object" } } });
      expect(findReferences(body)).toEqual([]);
      const reviewed = { file: "plain" } as const;
      expect(findDisallowedField(body, reviewed, parseAllowances([]))).toEqual({
        path: "Odd",
        pattern: "Odd",
      });
      expect(findDisallowedField({ file: body["file"] }, {}, parseAllowances([]))?.path).toBe(
        "file",
      );
      return ownCpuMs() - before;
    });
    expect(Math.min(...times)).toBeLessThan(100);
  });
});

describe("the parse time", () => {
  const MIB = 1024 * 1024;
  const cpu = (work: () => void): number => {
    work();
    const began = process.cpuUsage();
    for (let i = 0; i < 5; i++) work();
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 5000;
  };
  const boundary = `${"a".repeat(69)}b`;
  const hostile: readonly (readonly [string, (n: number) => Buffer])[] = [
    ["bytes", (n) => Buffer.alloc(n, 7)],
    ["the boundary's letters", (n) => Buffer.alloc(n, "a")],
    ["boundaries but for their last letter", (n) => Buffer.alloc(n, `\r\n--${"a".repeat(69)}`)],
    ["line breaks", (n) => Buffer.alloc(n, "\r\n")],
    ["dashes", (n) => Buffer.alloc(n, "-")],
  ];
  it.each(hostile)("is linear in the size of the form: %s", (_name, of) => {
    const time = (n: number) => {
      const raw = encodeMultipart({ f: { filename: "", mime: "x/y", data: of(n) } }, boundary);
      return cpu(() => void parseMultipartBody(raw, boundary));
    };
    const small = time(2 * MIB);
    expect(time(16 * MIB)).toBeLessThan(8 * Math.max(small, 2) * 3);
  });

  it("is limited by the number of parts and headers", () => {
    const many = (n: number) => encodeMultipart({ a: Array.from({ length: n }, () => "x") }, "b");
    expect(codeOf(many(64))).toBeUndefined();
    expect(codeOf(many(65))).toBe("too_many_form_parts");
    const head = (n: number) =>
      `--b\r\nX: ${"x".repeat(n)}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--`;
    expect(codeOf(head(16_000))).toBeUndefined();
    expect(codeOf(head(17_000))).toBe("form_head_too_large");
    expect(codeOf(`--b\r\n${"x".repeat(MIB)}\r\n--b--`)).toBe("form_head_too_large");
  });
});
