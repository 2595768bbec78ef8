import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { getFault } from "../../src/model/error.ts";
import { ownCpuMs } from "../kit/process/cpu-time.ts";
import {
  findEventData,
  endOfValue,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  findKey,
  createLineDecoder,
  encodeKey,
  createStringReplacer,
  createEventDecoder,
  findValue,
} from "../../src/protocols/sse/index.ts";
import { codePoint } from "../kit/code-points.ts";

type Seen = [event: string, data: string];

/** The bytes, split at these places. */
const cut = (b: Buffer, at: readonly number[]): Buffer[] => {
  const places = [...new Set([0, ...at.map((n) => n % (b.length + 1)), b.length])].toSorted(
    (x, y) => x - y,
  );
  return places.slice(1).map((to, i) => b.subarray(places[i]!, to));
};

const read = (chunks: readonly Buffer[]): Seen[] => {
  const seen: Seen[] = [];
  const decoder = createEventDecoder((event, data) => seen.push([event, data]));
  for (const c of chunks) decoder.push(c);
  decoder.end();
  return seen;
};

const codeOf = (run: () => unknown): string | undefined => {
  try {
    run();
  } catch (error) {
    return getFault(error)?.code;
  }
  return undefined;
};

// A second, simple implementation of the standard, for comparison with the fast one.
const standard = (text: string): Seen[] => {
  const seen: Seen[] = [];
  let event = "";
  let data: string[] = [];
  for (const line of text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.join("\n") !== "") seen.push([event, data.join("\n")]);
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    if (field === "event") event = value;
  }
  return seen;
};

const eol = fc.constantFrom("\n", "\r\n", "\r");
const word = fc.string({ unit: "grapheme", maxLength: 12 }).map((s) => s.replace(/[\r\n]/g, ""));
const line = fc.oneof(
  word.map((w) => `data: ${w}`),
  word.map((w) => `data:${w}`),
  word.map((w) => `event: ${w}`),
  word.map((w) => `: ${w}`),
  word.map((w) => `id: ${w}`),
  fc.constantFrom("data", "event", "dataset: no", "retry: 10", "", "", ""),
);
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, eol), { maxLength: 30 }))
  .map(([bom, lines]) => `${bom ? "\ufeff" : ""}${lines.map(([l, e]) => l + e).join("")}\n\n`);
const cuts = fc.array(fc.nat(), { maxLength: 12 });

describe("sse", () => {
  test("parses any stream like the standard, for any chunks", () => {
    fc.assert(
      fc.property(stream, cuts, (text, at) => {
        expect(read(cut(Buffer.from(text), at))).toEqual(standard(text));
      }),
    );
  });

  test("any two chunks, and single bytes, give the same events", () => {
    const text =
      '\ufeffevent: a\r\ndata: {"x":"é😀"}\r\n\r\n: ping\n\ndata: 1\ndata: 2\n\ndata: c\r\rdata: [DONE]\n\n';
    const b = Buffer.from(text);
    const want = standard(text);
    for (let i = 0; i <= b.length; i++) expect(read(cut(b, [i]))).toEqual(want);
    expect(read([...b].map((byte) => Buffer.from([byte])))).toEqual(want);
  });

  test("an event that ends in CR CR does not wait for the next chunk", () => {
    const seen: Seen[] = [];
    const decoder = createEventDecoder((event, data) => seen.push([event, data]));
    decoder.push(Buffer.from("data: a\r\r"));
    expect(seen).toEqual([["", "a"]]);
    decoder.push(Buffer.from("\ndata: b\n\n"));
    expect(seen).toEqual([
      ["", "a"],
      ["", "b"],
    ]);
  });

  test("at the end, a complete event without its blank line counts, a partial one does not", () => {
    expect(read([Buffer.from("data: [DONE]")])).toEqual([["", "[DONE]"]]);
    expect(read([Buffer.from('data: {"a":1}')])).toEqual([["", '{"a":1}']]);
    expect(read([Buffer.from('\ufeffdata: {"a":1}\n')])).toEqual([["", '{"a":1}']]);
    expect(read([Buffer.from("data: words\n")])).toEqual([["", "words"]]);
    expect(read([Buffer.from('data: {"a":')])).toEqual([]);
    expect(read([Buffer.from('data: {"a":\n')])).toEqual([]);
    expect(read([Buffer.from("data: [DON")])).toEqual([]);
    expect(read([Buffer.from("data: wor")])).toEqual([]);
  });

  test("bytes that are not UTF-8 are an upstream fault; a literal replacement character is not", () => {
    expect(codeOf(() => read([Buffer.from([100, 97, 116, 97, 58, 0xc3, 0x28, 10, 10])]))).toBe(
      "invalid_utf8",
    );
    expect(read([Buffer.from("data: \ufffd\n\n")])).toEqual([["", "\ufffd"]]);
  });

  test("a line of 50 MB is rejected before it is buffered", () => {
    const decoder = createEventDecoder(() => {});
    const mega = Buffer.alloc(64 * 1024, 97);
    let pushed = 0;
    decoder.push(Buffer.from("data: "));
    expect(
      codeOf(() => {
        for (; pushed < 800; pushed++) decoder.push(mega);
      }),
    ).toBe("event_too_large");
    expect(pushed * mega.length).toBeLessThanOrEqual(4 * 1024 * 1024);
    const line = Buffer.from(`data: ${"a".repeat(200)}\n\n`);
    expect(codeOf(() => createEventDecoder(() => {}, { maxLineBytes: 100 }).push(line))).toBe(
      "line_too_long",
    );
    expect(codeOf(() => createEventDecoder(() => {}, { maxEventBytes: 100 }).push(line))).toBe(
      "event_too_large",
    );
  });
});

describe("frames", () => {
  test("the ranges cover the stream, and each contains at most one event", () => {
    fc.assert(
      fc.property(stream, cuts, (text, at) => {
        const b = Buffer.from(text);
        const out: Buffer[] = [];
        const seen: Seen[] = [];
        const f = createEventSplitter((c, from, to) => {
          const frame = Buffer.from(c.subarray(from, to));
          out.push(frame);
          const e = parseEventText(frame);
          if (e) seen.push([e.event, e.data]);
        });
        for (const chunk of cut(b, at)) f.push(chunk);
        expect(f.isBetweenEvents).toBe(true);
        f.end();
        expect(Buffer.concat(out).toString()).toBe(text.replace(/^\ufeff/, ""));
        expect(seen).toEqual(standard(text));
      }),
    );
  });

  test("an event inside one chunk is a range of that chunk", () => {
    const b = Buffer.from("data: a\n\ndata: b\n\n: c\n\n");
    const got: [boolean, number, number][] = [];
    const f = createEventSplitter((c, from, to) => got.push([c === b, from, to]));
    f.push(b);
    expect(got).toEqual([
      [true, 0, 9],
      [true, 9, 18],
      [true, 18, 23],
    ]);
  });

  test("between reports whether an event is incomplete, and end() completes one", () => {
    const out: string[] = [];
    const f = createEventSplitter((c, from, to) => out.push(c.toString("utf8", from, to)));
    expect(f.isBetweenEvents).toBe(true);
    f.push(Buffer.from("data: [DO"));
    expect(f.isBetweenEvents).toBe(false);
    f.push(Buffer.from("NE]\n"));
    f.end();
    expect(out).toEqual(["data: [DONE]\n\n\n"]);
    expect(f.isBetweenEvents).toBe(true);
  });
});

describe("byte tools", () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });
  const spaced = (v: unknown, indent: number) => JSON.stringify(v, null, indent);
  /** Own data properties only, as in JSON: `__proto__` is a key like others. */
  const own = (o: Record<string, unknown>, key: string) =>
    Object.getOwnPropertyDescriptor(o, key)?.value;

  test("valueAt finds exactly the member that JSON.parse finds", () => {
    fc.assert(
      fc.property(object, object, fc.constantFrom(0, 1), (outer, inner, indent) => {
        const text = spaced({ ...outer, inner, last: [inner] }, indent);
        const parsed = JSON.parse(text) as Record<string, unknown>;
        const b = Buffer.from(text);
        for (const key of Object.keys(parsed)) {
          const at = findValue(b, [encodeKey(key)], 0)!;
          expect(JSON.parse(b.toString("utf8", at.from, at.to))).toEqual(own(parsed, key));
        }
        for (const key of Object.keys(inner)) {
          const at = findValue(b, [encodeKey("inner"), encodeKey(key)], 0)!;
          expect(JSON.parse(b.toString("utf8", at.from, at.to))).toEqual(
            own(parsed["inner"] as Record<string, unknown>, key),
          );
        }
        expect(findValue(b, [encodeKey("never there")], 0)).toBeUndefined();
        expect(endOfValue(b, 0)).toBe(b.length);
      }),
    );
  });

  test("keyAt does not match the key's text inside strings", () => {
    const traps = [
      { s: '"model":"x"', model: 1 },
      { 'a"model': "x", model: 1 },
      { s: ['"model"', "model", '\\"model":'], model: 1 },
      { "\\": '"model":', model: 1 },
    ];
    for (const trap of traps) {
      const b = Buffer.from(JSON.stringify(trap));
      const i = findKey(b, encodeKey("model"));
      expect(b.toString("utf8", i, i + 1)).toBe("1");
    }
    expect(findKey(Buffer.from('{"s":"\\"model\\":"}'), encodeKey("model"))).toBe(-1);
    fc.assert(
      fc.property(fc.array(fc.string()), (strings) => {
        const b = Buffer.from(
          JSON.stringify({ strings, with: `"model":${strings.join('"model":')}` }),
        );
        expect(findKey(b, encodeKey("model"))).toBe(-1);
      }),
    );
  });

  test("malformed JSON gives no result", () => {
    fc.assert(
      fc.property(object, fc.nat(), (o, at) => {
        const b = Buffer.from(JSON.stringify({ ...o, zz: { model: "m" } }));
        const half = b.subarray(0, at % b.length);
        expect(findValue(half, [encodeKey("zz"), encodeKey("nope")], 0)).toBeUndefined();
        endOfValue(half, 0);
      }),
    );
  });

  test("dataOf returns the position that eventOf reads, or undefined", () => {
    const of = (text: string) => {
      const b = Buffer.from(text);
      const at = findEventData(b);
      return at && b.toString("utf8", at.from, at.to);
    };
    expect(of("data: x\n\n")).toBe("x");
    expect(of("event: a\r\ndata:x\r\n\r\n")).toBe("x");
    expect(of("data: x")).toBe("x");
    expect(of(": c\n\n")).toBeUndefined();
    expect(of("\n")).toBeUndefined();
    expect(of("data: x\ndata: y\n\n")).toBeUndefined();
    expect(of("data: x\rdata: y\r\r")).toBeUndefined();
  });

  test("a rename changes this one value in every event", () => {
    const chunk = fc
      .tuple(fc.string(), fc.jsonValue({ maxDepth: 2 }), fc.boolean(), fc.string())
      .map(([id, x, first, model]) =>
        first
          ? { id, model, choices: [{ delta: { content: `"model":"${id}"` }, model: "nested" }], x }
          : { x, choices: [{ model: "nested", text: id }], id, model },
      );
    fc.assert(
      fc.property(fc.array(chunk, { minLength: 1 }), fc.constantFrom(0, 1), (chunks, indent) => {
        const out: Buffer[] = [];
        const g = createWriteBatch((b) => out.push(b));
        const rename = createStringReplacer(["model"], 'p/"q"');
        for (const c of chunks) {
          const b = Buffer.from(`data: ${spaced(c, indent).replaceAll("\n", "")}\n\n`);
          rename(b, 6, g);
        }
        g.flush();
        expect(out.length).toBe(1);
        const got = read([out[0]!]).map(([, data]) => JSON.parse(data) as unknown);
        expect(got).toEqual(
          chunks.map((c) => JSON.parse(JSON.stringify({ ...c, model: 'p/"q"' })) as unknown),
        );
      }),
    );
  });
});

describe("lines", () => {
  const read = (chunks: readonly Buffer[], cap?: number) => {
    const got: string[] = [];
    const decoder = createLineDecoder((line) => void got.push(line), cap);
    for (const chunk of chunks) decoder.push(chunk);
    decoder.end();
    return got;
  };

  it("are the same for any chunks, with or without a final line end", () => {
    const line = fc.string({ unit: codePoint }).map((s) => s.toWellFormed().replace(/[\r\n]/g, ""));
    const ends = fc.constantFrom("\n", "\r\n", "\n\n");
    fc.assert(
      fc.property(fc.array(fc.tuple(line, ends)), line, fc.array(fc.nat(9)), (all, last, cuts) => {
        const bytes = Buffer.from(all.map(([text, end]) => text + end).join("") + last);
        const chunks: Buffer[] = [];
        let at = 0;
        for (const cut of cuts) chunks.push(bytes.subarray(at, (at += cut)));
        chunks.push(bytes.subarray(at));
        const due = [...all.map(([text]) => text), last].map((text) => text.trim()).filter(Boolean);
        expect(read(chunks)).toEqual(due);
      }),
    );
  });

  it("have a maximum length each, for any chunks, but no total limit", () => {
    const codeOf = (chunks: readonly Buffer[]) => {
      try {
        read(chunks, 10);
        return undefined;
      } catch (error) {
        return getFault(error)?.code;
      }
    };
    const bytes = (n: number) => Array.from({ length: n }, () => Buffer.from("x"));
    expect(codeOf([Buffer.from(`${"x".repeat(10)}\n`.repeat(50))])).toBeUndefined();
    expect(codeOf([Buffer.from(`${"x".repeat(11)}\n`)])).toBe("event_too_large");
    expect(codeOf(bytes(10))).toBeUndefined();
    expect(codeOf(bytes(11))).toBe("event_too_large");
  });

  it("that are not UTF-8 are an upstream fault", () => {
    expect(() => read([Buffer.from([0xff, 10])])).toThrow(/UTF-8/);
    expect(read([Buffer.from("\ufffd\n")])).toEqual(["\ufffd"]);
  });

  it("take linear time, also one byte at a time", () => {
    const one = Buffer.from("x");
    const time = (n: number) => {
      const before = ownCpuMs();
      const decoder = createLineDecoder(() => {});
      for (let i = 0; i < n; i++) decoder.push(one);
      decoder.end();
      return ownCpuMs() - before;
    };
    time(10_000);
    expect(time(800_000)).toBeLessThan(8 * 6 * Math.max(time(100_000), 10));
  });
});
